// A bounded context as the platform runs it: its aggregates, its handlers and its outgoing messages.

import type { Aggregate } from '../../aggregates/define-aggregate.ts';
import type { Bus } from '../../bus/bus.ts';
import type { NewCommand } from '../../contracts/define-command.ts';
import type { NewEvent } from '../../contracts/envelope.ts';
import { checkIdentifier } from '../../contracts/identifier.ts';
import type { DestinationSettings } from '../../delivery/create-delivery.ts';
import type { Destination } from '../../delivery/destination.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { OutboxProjectorDefinition } from '../../outbox/outbox-projector.ts';
import type { Projection } from '../../projections/projection.ts';
import type { SendCommand } from '../../reactors/reaction.ts';
import type { Reactor } from '../../reactors/reactor.ts';
import type { Saga } from '../../reactors/saga.ts';
import type { EventFilter } from '../../store/event-filter.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { Subscription } from '../../subscriptions/subscription.ts';
import type { TaskDefinition } from '../../tasks/task-definition.ts';
import type { KeyStore } from '../../work/key-store.ts';
import type { WorkQueue } from '../../work/work-queue.ts';
import type { LoadAggregate } from '../platform-commands.ts';
import type { ReadDocuments, WaitForProjection } from '../platform-projections.ts';
import type { ModuleWeb, WebContext } from './module-web.ts';
import type { PlatformRole } from '../config/platform-role.ts';
import { tokenScopes, type TokenScope } from '../tokens/scopes.ts';
import { checkProjectionSource, sourceFilter } from './source-streams.ts';

/** An aggregate with any state, events and commands. */
export type AnyAggregate = Aggregate<unknown, NewEvent, NewCommand>;

// oxlint-disable-next-line typescript/no-explicit-any -- of any payload: their schemas check it
export type AnyTask = TaskDefinition<any>;

export type Destinations = Readonly<Record<string, Destination | DestinationSettings>>;

/** The parts of the platform for handlers and services of a module; usable once `createPlatform` has resolved. */
export interface ModuleContext {
  /** Sends a command to any aggregate of the platform. */
  readonly send: SendCommand;
  /** The current state of an aggregate, with every appended event; read models may lag. */
  readonly load: LoadAggregate;
  readonly clock: Clock;
  readonly observer: Observer;
  /** Events of all tenants. */
  readonly readAll: EventStore['readAll'];
  readonly documents: ReadDocuments;
  /** Rebuilds documents of a projection that their database lost. */
  readonly restore: (projection: Projection, signal?: AbortSignal) => Promise<number>;
  /** Keys shared by the workers of all processes and by all modules: use a prefix. */
  readonly keys: () => Promise<KeyStore>;
  /** Jobs for workers, shared by all modules. */
  readonly workQueue: () => Promise<WorkQueue>;
  readonly waitFor: WaitForProjection;
  /** The platform's bus, opened at the first call. */
  readonly bus: () => Promise<Bus>;
}

/** A role of the engines that a module uses through its context. */
export type UsedRole = 'bus' | 'keys' | 'queue';

/** A background service: workers of a queue, sweepers. Started in each process that has the role. */
export interface ModuleService {
  readonly role: PlatformRole;
  /** Disposing waits for running work. */
  start(): Promise<AsyncDisposable>;
}

export interface PlatformModule {
  /** Kebab-case; unique within the platform. */
  readonly name: string;
  readonly aggregates?: readonly AnyAggregate[] | undefined;
  /**
   * The commands that HTTP and WebSocket clients may send, with the scope that each needs. All other commands are internal:
   * the module's own routes, reactors, sagas and tasks send them. Payloads must not name the sender: `decide` gets it as
   * `context.user`.
   */
  readonly commands?: Readonly<Record<string, TokenScope>> | undefined;
  /**
   * Fields of events and documents whose values no client may see, such as encrypted tokens, by the name of an aggregate or
   * a read model of the module. Servers replace them; handlers, `documents` and gRPC clients with the scope `admin` get
   * the values.
   */
  readonly secrets?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly projections?: readonly Projection[] | undefined;
  /** A function if the reactions depend on other aggregates. */
  readonly reactors?:
    | (readonly Reactor[] | ((context: ModuleContext) => readonly Reactor[]))
    | undefined;
  readonly sagas?: readonly Saga[] | undefined;
  /** A function if the subscriptions need the bus or another part of the platform. */
  readonly subscriptions?:
    | readonly Subscription[]
    | ((context: ModuleContext) => readonly Subscription[]);
  readonly services?: ((context: ModuleContext) => readonly ModuleService[]) | undefined;
  /** The parts of the context that its handlers and services use, so that an engine is found for them at the start. */
  readonly uses?: readonly UsedRole[] | undefined;
  /** Maps events to outgoing messages. */
  readonly outbox?: readonly OutboxProjectorDefinition[] | undefined;
  /**
   * By integration type, or by the part before its colon. A function if the response of a receiver becomes a
   * command.
   */
  readonly destinations?: (Destinations | ((context: ModuleContext) => Destinations)) | undefined;
  /** Handlers of task types; a function if they send commands. */
  readonly tasks?:
    | (readonly AnyTask[] | ((context: ModuleContext) => readonly AnyTask[]))
    | undefined;
  /** Returns the routes and WebSocket messages of the module; called by each server that is started. */
  readonly web?: ((context: WebContext) => ModuleWeb) | undefined;
}

/** A command type that clients may send. */
export interface OpenCommand {
  readonly scope: TokenScope;
  /** The aggregates that accept it from clients: several, if they have one name. */
  readonly aggregates: readonly AnyAggregate[];
}

/** Names of secret fields. */
interface SecretFields {
  /** By category of the aggregate; those without secret fields have an empty list. */
  readonly events: ReadonlyMap<string, readonly string[]>;
  /** By read model: `banking.account`. */
  readonly documents: ReadonlyMap<string, readonly string[]>;
}

/** What a module defines, by name. */
interface ModuleSummary {
  readonly name: string;
  readonly aggregates: readonly string[];
  readonly projections: readonly string[];
  readonly sagas: readonly string[];
}

/** The parts of all modules, checked for duplicate names. */
export interface ModuleBook {
  readonly summaries: readonly ModuleSummary[];
  /** By category: `banking.account.v1`. */
  readonly aggregates: ReadonlyMap<string, AnyAggregate>;
  /** The commands open to clients, by type. */
  readonly commands: ReadonlyMap<string, OpenCommand>;
  readonly secrets: SecretFields;
  readonly projections: readonly Projection[];
  readonly reactors: readonly Reactor[];
  readonly sagas: readonly Saga[];
  readonly subscriptions: readonly Subscription[];
  readonly services: readonly ModuleService[];
  readonly uses: ReadonlySet<UsedRole>;
  readonly outbox: readonly OutboxProjectorDefinition[];
  readonly destinations: Destinations;
  readonly tasks: readonly AnyTask[];
  readonly web: readonly ((context: WebContext) => ModuleWeb)[];
}

/**
 * Puts the parts of a bounded context together, for `createPlatform`.
 *
 * @example
 * import { defineAggregate } from 'millrace/aggregates';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { defineModule } from 'millrace/platform';
 * import { z } from 'zod';
 *
 * const rung = defineEvent('bell.rung.v1', z.object({}));
 * const ring = defineCommand('bell.ring', z.object({}));
 * export default defineModule({
 *   name: 'house',
 *   aggregates: [
 *     defineAggregate({
 *       bc: 'house', name: 'bell', version: 1, events: [rung], commands: [ring], initial: 0,
 *       evolve: { 'bell.rung.v1': (times) => times + 1 },
 *       decide: { 'bell.ring': () => rung({}) },
 *     }),
 *   ],
 *   commands: { 'bell.ring': 'append' },
 * });
 */
export function defineModule(module: PlatformModule): PlatformModule {
  checkIdentifier('module', module.name);
  return module;
}

/** The parts of a platform that exist only after its engines are opened. */
type PlatformParts = Omit<ModuleContext, 'clock' | 'observer'>;

/** Modules are bound before the engines are opened; `connect` then completes their context. */
export function createModuleContext({
  clock = systemClock,
  observer = silentObserver,
}: Partial<Pick<ModuleContext, 'clock' | 'observer'>> = {}): {
  readonly context: ModuleContext;
  readonly connect: (parts: PlatformParts) => void;
} {
  let connected: PlatformParts | undefined;
  function parts(): PlatformParts {
    if (connected !== undefined) return connected;
    throw new MillraceError(
      'NOT_SUPPORTED',
      'a module used its context before createPlatform resolved: use it in handlers and services only',
    );
  }
  return {
    connect: (complete) => void (connected = complete),
    context: {
      clock,
      observer,
      send: (request) => parts().send(request),
      load: (aggregate, address) => parts().load(aggregate, address),
      readAll: (options) => parts().readAll(options),
      documents: (family) => parts().documents(family),
      restore: (projection, signal) => parts().restore(projection, signal),
      keys: () => parts().keys(),
      workQueue: () => parts().workQueue(),
      waitFor: (...wanted) => parts().waitFor(...wanted),
      bus: () => parts().bus(),
    },
  };
}

/** Two parts with one name would share a checkpoint, a stream or a route, so they are rejected before anything runs. */
export function bindModules(
  modules: readonly PlatformModule[],
  context: ModuleContext,
): ModuleBook {
  const all = <Part>(pick: (module: PlatformModule) => readonly Part[] | undefined): Part[] =>
    modules.flatMap((module) => pick(module) ?? []);
  const aggregates = new Map<string, AnyAggregate>();
  for (const aggregate of all((each) => each.aggregates)) {
    if (aggregates.has(aggregate.category)) throw duplicate('aggregate', aggregate.category);
    aggregates.set(aggregate.category, aggregate);
  }
  const destinations = modules.map(({ destinations: each = {} }) =>
    typeof each === 'function' ? each(context) : each,
  );
  const known = [...aggregates.values()];
  /** Reads the streams of the module's bounded context, unless the definition names others. */
  const sourced = <Part extends { readonly filter?: EventFilter | undefined }>(
    parts: readonly Part[] | undefined,
    { aggregates: own = [] }: PlatformModule,
    nameOf: (part: Part) => string,
  ): Part[] =>
    (parts ?? []).map((part) => {
      const scope = { name: nameOf(part), own, all: known };
      return { ...part, filter: sourceFilter(part.filter ?? {}, scope) };
    });
  const book = {
    summaries: modules.map(({ name, ...module }) => ({
      name,
      aggregates: (module.aggregates ?? []).map(({ category }) => category),
      projections: (module.projections ?? []).map((each) => each.name),
      sagas: (module.sagas ?? []).map(({ subscription }) => subscription),
    })),
    aggregates,
    commands: openCommands(modules),
    secrets: secretFields(modules),
    projections: all(({ projections }) => projections),
    reactors: all((module) => {
      const { reactors } = module;
      const given = typeof reactors === 'function' ? reactors(context) : reactors;
      return sourced(given, module, ({ name }) => name);
    }),
    sagas: all((module) => sourced(module.sagas, module, ({ subscription }) => subscription)),
    subscriptions: all(({ subscriptions }) =>
      typeof subscriptions === 'function' ? subscriptions(context) : subscriptions,
    ),
    services: all(({ services }) => services?.(context)),
    uses: new Set(all(({ uses }) => uses)),
    outbox: all((module) => sourced(module.outbox, module, ({ name }) => name)),
    destinations: Object.assign({}, ...destinations),
    tasks: all(({ tasks }) => (typeof tasks === 'function' ? tasks(context) : tasks)),
    web: all(({ web }) => (web === undefined ? [] : [web])),
  } satisfies ModuleBook;
  for (const each of book.projections) checkProjectionSource(each, known);
  unique(
    'module',
    modules.map(({ name }) => name),
  );
  unique('subscription', [
    ...[...book.projections, ...book.reactors, ...book.subscriptions, ...book.outbox].map(
      ({ name }) => name,
    ),
    ...book.sagas.map(({ subscription }) => subscription),
  ]);
  unique(
    'task',
    book.tasks.map(({ name }) => name),
  );
  unique(
    'destination',
    destinations.flatMap((each) => Object.keys(each)),
  );
  return book;
}

/** A misspelled command would otherwise stay internal without notice. */
function openCommands(modules: readonly PlatformModule[]): ReadonlyMap<string, OpenCommand> {
  const opened = new Map<string, OpenCommand>();
  for (const { name, aggregates = [], commands = {} } of modules) {
    for (const [type, scope] of Object.entries(commands)) {
      const invalid = (problem: string): MillraceError =>
        new MillraceError('CONFIG_INVALID', `module '${name}': command '${type}': ${problem}`, {
          details: { field: 'commands', command: type },
        });
      const own = aggregates.filter((each) => each.commands.some((known) => known.type === type));
      if (own.length === 0) throw invalid('no aggregate of the module has it');
      if (!tokenScopes.includes(scope)) throw invalid(`unknown scope '${scope}'`);
      const other = opened.get(type);
      // Both have one route, and a route has one scope.
      if (other !== undefined && other.scope !== scope) {
        throw invalid(`needs the scope '${other.scope}', as in the other module that opens it`);
      }
      opened.set(type, { scope, aggregates: [...(other?.aggregates ?? []), ...own] });
    }
  }
  return opened;
}

/** A misspelled name would otherwise show secrets. */
function secretFields(modules: readonly PlatformModule[]): SecretFields {
  const events = new Map<string, readonly string[]>();
  const documents = new Map<string, readonly string[]>();
  for (const { name, aggregates = [], projections = [], secrets = {} } of modules) {
    for (const { category } of aggregates) events.set(category, []);
    for (const [key, fields] of Object.entries(secrets)) {
      const own = aggregates.filter((each) => each.name === key);
      const models = [
        ...own.map((each) => ({ bc: each.bc, aggregate: each.name })),
        ...projections.map(({ readModel }) => readModel).filter((each) => each.aggregate === key),
      ];
      if (models.length === 0) {
        throw new MillraceError(
          'CONFIG_INVALID',
          `module '${name}': secrets of '${key}': the module has no such aggregate or read model`,
          { details: { field: 'secrets', aggregate: key } },
        );
      }
      for (const { category } of own) events.set(category, fields);
      for (const { bc, aggregate } of models) documents.set(`${bc}.${aggregate}`, fields);
    }
  }
  return { events, documents };
}

function unique(what: string, names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw duplicate(what, name);
    seen.add(name);
  }
}

function duplicate(what: string, name: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `duplicate ${what} '${name}'`, {
    details: { field: 'modules', [what]: name },
  });
}
