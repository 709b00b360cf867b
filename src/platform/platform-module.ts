// A bounded context as the platform runs it: what it decides, what follows from it, and what leaves.

import type { Aggregate } from '../aggregates/aggregate.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { checkIdentifier } from '../contracts/identifier.ts';
import type { DestinationSettings } from '../delivery/create-delivery.ts';
import type { Destination } from '../delivery/destination.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { OutboxProjectorDefinition } from '../outbox/outbox-projector.ts';
import type { DocumentQueries } from '../projections/documents.ts';
import type { Projection } from '../projections/projection.ts';
import type { ModelKey } from '../projections/read-model-store.ts';
import type { SendCommand } from '../reactors/reaction.ts';
import type { Reactor } from '../reactors/reactor.ts';
import type { Saga } from '../reactors/saga.ts';
import type { EventStore } from '../store/event-store.ts';
import type { Subscription } from '../subscriptions/subscription.ts';
import type { TaskDefinition } from '../tasks/task-definition.ts';
import type { KeyStore } from '../work/key-store.ts';
import type { WorkQueue } from '../work/work-queue.ts';
import type { LoadAggregate } from './load-aggregate.ts';
import type { ModuleWeb, WebContext } from './module-web.ts';
import type { PlatformRole } from './platform-role.ts';

/** Of whatever state, events and commands. */
export type AnyAggregate = Aggregate<unknown, NewEvent, NewCommand>;

// oxlint-disable-next-line typescript/no-explicit-any -- of any payload: their schemas check it
export type AnyTask = TaskDefinition<any>;

export type Destinations = Readonly<Record<string, Destination | DestinationSettings>>;

/** What a module may use of the platform that it becomes a part of. */
export interface ModuleContext {
  /** Sends a command to any aggregate of the platform; not before the platform is there. */
  readonly send: SendCommand;
  /** What an aggregate is now, with everything that was appended: read models may lag behind. */
  readonly load: LoadAggregate;
  readonly clock: Clock;
  readonly observer: Observer;
  /** Events of all tenants, as far as they are appended. */
  readonly readAll: EventStore['readAll'];
  /** Documents of the platform, whoever writes them. */
  readonly documents: (family: Pick<ModelKey, 'bc' | 'aggregate'>) => DocumentQueries<object>;
  /** Folds the documents of a projection again that were lost where they are kept. */
  readonly restore: (projection: Projection, signal?: AbortSignal) => Promise<number>;
  /** What workers of all processes agree by; the same for all modules, so that names need a prefix. */
  readonly keys: () => Promise<KeyStore>;
  /** Jobs for workers, by the role `queue`. The same one each time. */
  readonly workQueue: (
    name: string,
    options?: { readonly leaseMs?: number | undefined },
  ) => Promise<WorkQueue>;
}

/** What runs beside events: workers of a queue, sweepers. Started in each process that has the role. */
export interface ModuleService {
  readonly role: PlatformRole;
  /** Disposing of it lets what is under way come to its end. */
  start(): Promise<AsyncDisposable>;
}

export interface PlatformModule {
  /** Kebab-case; unique among those of a platform. */
  readonly name: string;
  readonly aggregates?: readonly AnyAggregate[];
  readonly projections?: readonly Projection[];
  /** A function where what follows depends on what other aggregates are. */
  readonly reactors?: readonly Reactor[] | ((context: ModuleContext) => readonly Reactor[]);
  readonly sagas?: readonly Saga[];
  readonly subscriptions?:
    | readonly Subscription[]
    | ((context: ModuleContext) => readonly Subscription[]);
  readonly services?: (context: ModuleContext) => readonly ModuleService[];
  /** Events → messages for the outside. */
  readonly outbox?: readonly OutboxProjectorDefinition[];
  /**
   * By integration type, or by what stands before its colon. A function where what a receiver
   * answers becomes a command.
   */
  readonly destinations?: Destinations | ((context: ModuleContext) => Destinations);
  /** What runs the jobs of a type; a function where it sends commands. */
  readonly tasks?: readonly AnyTask[] | ((context: ModuleContext) => readonly AnyTask[]);
  /** Routes and WebSocket messages of its own; called by each server that is started. */
  readonly web?: (context: WebContext) => ModuleWeb;
}

/** All modules as one: what each name stands for is found once. */
export interface ModuleBook {
  readonly aggregates: ReadonlyMap<string, AnyAggregate>;
  readonly projections: readonly Projection[];
  readonly reactors: readonly Reactor[];
  readonly sagas: readonly Saga[];
  readonly subscriptions: readonly Subscription[];
  readonly services: readonly ModuleService[];
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
 * });
 */
export function defineModule(module: PlatformModule): PlatformModule {
  checkIdentifier('module', module.name);
  return module;
}

/** Two of one name would share a checkpoint, a stream or a route: told before anything runs. */
export function bindModules(
  modules: readonly PlatformModule[],
  context: ModuleContext,
): ModuleBook {
  const aggregates = new Map<string, AnyAggregate>();
  for (const aggregate of modules.flatMap((each) => each.aggregates ?? [])) {
    if (aggregates.has(aggregate.name)) throw twice('aggregate', aggregate.name);
    aggregates.set(aggregate.name, aggregate);
  }
  const all = <Part>(pick: (module: PlatformModule) => readonly Part[] | undefined): Part[] =>
    modules.flatMap((module) => pick(module) ?? []);
  const destinations = modules.map(({ destinations: each = {} }) =>
    typeof each === 'function' ? each(context) : each,
  );
  const book = {
    aggregates,
    projections: all(({ projections }) => projections),
    reactors: all(({ reactors }) =>
      typeof reactors === 'function' ? reactors(context) : reactors,
    ),
    sagas: all(({ sagas }) => sagas),
    subscriptions: all(({ subscriptions }) =>
      typeof subscriptions === 'function' ? subscriptions(context) : subscriptions,
    ),
    services: all(({ services }) => services?.(context)),
    outbox: all(({ outbox }) => outbox),
    destinations: Object.assign({}, ...destinations),
    tasks: all(({ tasks }) => (typeof tasks === 'function' ? tasks(context) : tasks)),
    web: all(({ web }) => (web === undefined ? [] : [web])),
  } satisfies ModuleBook;
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

function unique(what: string, names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw twice(what, name);
    seen.add(name);
  }
}

function twice(what: string, name: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `the ${what} '${name}' is there twice`, {
    details: { field: 'modules', [what]: name },
  });
}
