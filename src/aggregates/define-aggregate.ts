// Creates an aggregate from its events, its commands and two maps of pure functions, and checks the
// definition for errors that the compiler cannot see.

import type { CommandOf, NewCommand } from '../contracts/define-command.ts';
import type { EventOf } from '../contracts/define-event.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import type { Identifier } from '../contracts/identifier.ts';
import { buildCategory, buildStreamName } from '../contracts/stream-name.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import { MillraceError } from '../foundation/error.ts';
import { isForgotten, type Forgotten } from '../store/erasure.ts';
import { categoryOf } from '../store/stream-category.ts';
import type { SnapshotPolicy } from './snapshots.ts';
import {
  createInterpreter,
  unreadable,
  type AggregateEvent,
  type InvalidDefinition,
  type Named,
  type Upcaster,
} from './upcast.ts';

/** The context of a decision, in addition to command and state: current time, new ids and user. */
export interface DecideContext {
  readonly tenant: string;
  readonly id: string;
  /** Revision of the last event in the state; −1: the stream has no events yet. */
  readonly revision: number;
  readonly nowMs: number;
  readonly commandId: string;
  readonly correlationId: string;
  readonly user?: NonNullable<DomainEventEnvelope['user']> | undefined;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  /** A new id for an entity that the decision creates; retries of a command with a key get the same ids. */
  readonly nextId: () => string;
}

/** Created by `defineAggregate`; used by `createCommandHandler` and `given`. */
export interface Aggregate<State, Event extends NewEvent, Command extends NewCommand> {
  readonly bc: string;
  readonly name: string;
  readonly version: number;
  /** The category of its streams, `<bc>.<name>.v<version>`: identifies the aggregate in a platform. */
  readonly category: string;
  /** The stream name of one aggregate instance. */
  streamOf(tenant: string, id: string, tenants?: TenantLookup): string;
  /** All command and event definitions, for generated descriptions such as OpenAPI. */
  readonly commands: readonly Named[];
  readonly events: readonly Named[];
  /** Types that are upcast to one of `events` when they are read. */
  readonly olderEvents: readonly string[];
  readonly initial: State;
  readonly snapshot: SnapshotPolicy<State>;
  /** The data subject of all events; absent: the command's headers decide. */
  readonly dataSubject?: ((tenant: string, id: string) => string) | undefined;

  /** Checks an external command: the type is known and the payload matches the schema. */
  parseCommand(command: NewCommand): Command;
  /** Returns the resulting events; throws `CommandRejected` when a business rule rejects the command. */
  decide(command: Command, state: State, context: DecideContext): readonly Event[];
  /** Returns the event in its newest version; undefined: unknown type, skip the event. */
  interpret(event: AggregateEvent): AggregateEvent<Event> | undefined;
  /** Applies an event of any version to the state. */
  evolve(state: State, event: AggregateEvent): State;
}

// The maps iterate over type names instead of `[Each in Event as Each['type']]`: with a renamed key
// TypeScript cannot infer the parameter types of a handler.

/** For each event type, a function that applies the event to the state. */
export type EvolveMap<State, Event extends NewEvent> = {
  readonly [Type in Event['type']]: (
    state: State,
    payload: Extract<Event, { readonly type: Type }>['payload'],
    event: AggregateEvent<Extract<Event, { readonly type: Type }>>,
  ) => State;
};

/** For each command type, a function that returns the resulting events; the list may be empty. */
export type DecideMap<State, Event extends NewEvent, Command extends NewCommand> = {
  readonly [Type in Command['type']]: (
    payload: Extract<Command, { readonly type: Type }>['payload'],
    state: State,
    context: DecideContext,
  ) => Event | readonly Event[];
};

/** A pure function; throws if the name would parse as a stream of another tenant. */
export type StreamNaming = (tenant: string, id: string, tenants?: TenantLookup) => string;

export type ForgottenEvent = NewEvent<string, Forgotten>;

export interface AggregateDefinition<
  Bc extends string,
  Name extends string,
  Events extends readonly Named<Name>[],
  Commands extends readonly Named<Name>[],
  State,
> {
  readonly bc: Identifier<Bc>;
  readonly name: Identifier<Name>;
  /** Version of the stream category. Increase it to start a new history, not when an event changes. */
  readonly version: number;
  /**
   * For streams that were named before Millrace: the whole name, `<category>-<tenant>-<id>`, with no hyphen
   * in the category. Default: `<bc>.<name>.v<version>-<tenant>-<id>`.
   */
  readonly streamName?: StreamNaming | undefined;
  readonly events: Events;
  readonly commands: Commands;
  /** The state before the first event. It is frozen: `evolve` returns a new state. */
  readonly initial: State;
  readonly evolve: EvolveMap<NoInfer<State>, EventOf<Events[number]>>;
  readonly decide: DecideMap<NoInfer<State>, EventOf<Events[number]>, CommandOf<Commands[number]>>;
  /**
   * The person whose data the events contain: all events are encrypted with that person's key, whichever
   * user sends the command. Default: only events of commands whose headers name a data subject.
   */
  readonly dataSubject?: ((tenant: string, id: string) => string) | undefined;
  /** Default: every 100 events, code version 1. */
  readonly snapshot?: Partial<SnapshotPolicy<NoInfer<State>>> | undefined;
  readonly upcasters?: readonly Upcaster[] | undefined;
  /** Handling of a stored type that is neither an event nor upcast to one. Default: `fail`. */
  readonly unknownEvents?: 'fail' | 'skip' | undefined;
  /** Applies events whose payload was erased; `evolve` never receives them. Default: skip them. */
  readonly forgotten?:
    | ((state: NoInfer<State>, event: AggregateEvent<ForgottenEvent>) => NoInfer<State>)
    | undefined;
}

/**
 * Defines an aggregate. `decide` returns the events that a command causes and may throw `CommandRejected`;
 * `evolve` applies an event to the state. Both are pure: time, ids and the user are in the context.
 *
 * @example
 * import { defineAggregate, CommandRejected } from 'millrace/aggregates';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { z } from 'zod';
 *
 * const money = z.object({ amount: z.number().positive() });
 * const deposited = defineEvent('account.deposited.v1', money);
 * const withdrawn = defineEvent('account.withdrawn.v1', money);
 * const deposit = defineCommand('account.deposit', money);
 * const withdraw = defineCommand('account.withdraw', money);
 *
 * const account = defineAggregate({
 *   bc: 'banking',
 *   name: 'account',
 *   version: 1,
 *   events: [deposited, withdrawn],
 *   commands: [deposit, withdraw],
 *   initial: { balance: 0 },
 *   evolve: {
 *     'account.deposited.v1': (state, { amount }) => ({ balance: state.balance + amount }),
 *     'account.withdrawn.v1': (state, { amount }) => ({ balance: state.balance - amount }),
 *   },
 *   decide: {
 *     'account.deposit': ({ amount }) => deposited({ amount }),
 *     'account.withdraw': ({ amount }, { balance }) => {
 *       if (amount > balance) throw new CommandRejected('insufficient-funds', `only ${balance} left`);
 *       return withdrawn({ amount });
 *     },
 *   },
 * });
 */
export function defineAggregate<
  const Bc extends string,
  const Name extends string,
  const Events extends readonly Named<Name>[],
  const Commands extends readonly Named<Name>[],
  State,
>(
  definition: AggregateDefinition<Bc, Name, Events, Commands, State>,
): Aggregate<State, EventOf<Events[number]>, CommandOf<Commands[number]>> {
  type Event = EventOf<Events[number]>;
  type Command = CommandOf<Commands[number]>;
  const { bc, version, initial, forgotten, dataSubject } = definition;
  const name: string = definition.name;
  const invalid = (reason: string): Error =>
    new MillraceError('AGGREGATE_INVALID', `aggregate '${name}': ${reason}`, {
      details: { aggregate: name, reason },
    });

  const ownCategory = buildCategory<string, string>(bc, name, version);
  const { streamName } = definition;
  const category = streamName === undefined ? ownCategory : categoryOf(streamName('t', 'i'));
  if (category === undefined) throw invalid('streamName must return <category>-<tenant>-<id>');
  const events = checkNames(name, definition.events, invalid);
  const commands = checkNames(name, definition.commands, invalid);
  type Decider = (
    payload: unknown,
    state: State,
    context: DecideContext,
  ) => Event | readonly Event[];
  type Evolver = (state: State, payload: unknown, event: AggregateEvent<Event>) => State;
  // The definition's types check each handler with its payload; here handlers are looked up by name.
  const deciders = handlersOf<Decider>('decide', definition.decide, commands, invalid);
  const evolvers = handlersOf<Evolver>('evolve', definition.evolve, events, invalid);
  const { upcasters = [], unknownEvents = 'fail' } = definition;
  const interpret = createInterpreter<Event>({ events, upcasters, unknownEvents, invalid });

  return {
    bc,
    name,
    version,
    category,
    streamOf:
      streamName ??
      ((tenant, id, tenants) =>
        buildStreamName<string, string>(bc, name, version, tenant, id, tenants)),
    commands: [...commands.values()],
    events: [...events.values()],
    olderEvents: upcasters.map(({ from }) => from),
    initial: deepFreeze(initial),
    snapshot: checkSnapshotPolicy(definition.snapshot, invalid),
    dataSubject,
    interpret,

    parseCommand(command) {
      const known = commands.get(command.type);
      if (known === undefined) throw unknownCommand(name, command.type);
      return { type: command.type, payload: known.parse(command.payload) } as Command;
    },

    decide(command, state, context) {
      const decider = deciders.get(command.type);
      if (decider === undefined) throw unknownCommand(name, command.type);
      const decided = decider(command.payload, state, context);
      const decidedEvents = isList(decided) ? decided : [decided];
      // Storing an unknown event would make the whole stream unreadable, so `skip` does not apply here.
      for (const { type } of decidedEvents) {
        if (!events.has(type)) throw unlistedEvent(command.type, type);
      }
      return decidedEvents;
    },

    evolve(state, event) {
      const known = interpret(event);
      const evolver = known === undefined ? undefined : evolvers.get(known.type);
      if (known === undefined || evolver === undefined) return state;
      try {
        if (!isForgotten(known.payload)) return evolver(state, known.payload, known);
        if (forgotten === undefined) return state;
        return forgotten(state, known as AggregateEvent<ForgottenEvent>);
      } catch (error) {
        throw unreadable(event, 'could not be applied', error);
      }
    },
  };
}

function isList<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}

function unknownCommand(aggregate: string, type: string): Error {
  return new MillraceError(
    'COMMAND_UNKNOWN',
    `unknown command '${type}' of aggregate '${aggregate}'`,
    {
      details: { aggregate, type },
    },
  );
}

function unlistedEvent(command: string, type: string): Error {
  return new MillraceError(
    'EVENT_UNKNOWN',
    `'${command}' decided '${type}', which is not an event of its aggregate`,
    { details: { command, type } },
  );
}

const snapshotDefaults = { every: 100, codeVersion: 1 } as const;

function checkNames(
  aggregate: string,
  definitions: readonly Named[],
  invalid: InvalidDefinition,
): ReadonlyMap<string, Named> {
  const byType = new Map<string, Named>();
  for (const definition of definitions) {
    const { type, agg } = definition;
    if (agg !== aggregate) throw invalid(`'${type}' belongs to '${agg}'`);
    if (byType.has(type)) throw invalid(`'${type}' is listed twice`);
    byType.set(type, definition);
  }
  return byType;
}

function handlersOf<Handler>(
  map: 'decide' | 'evolve',
  handlers: object,
  known: ReadonlyMap<string, Named>,
  invalid: InvalidDefinition,
): ReadonlyMap<string, Handler> {
  const byType = new Map<string, unknown>(Object.entries(handlers));
  for (const type of known.keys()) {
    if (typeof byType.get(type) !== 'function')
      throw invalid(`${map} has no handler for '${type}'`);
  }
  for (const type of byType.keys()) {
    if (!known.has(type)) throw invalid(`${map} handles '${type}', which is not listed`);
  }
  return byType as ReadonlyMap<string, Handler>;
}

function checkSnapshotPolicy<State>(
  policy: Partial<SnapshotPolicy<State>> = {},
  invalid: InvalidDefinition,
): SnapshotPolicy<State> {
  const { every = snapshotDefaults.every, codeVersion = snapshotDefaults.codeVersion } = policy;
  const { afterMs, holdsPersonalData = true } = policy;
  if (!Number.isInteger(every) || every < 1) {
    throw invalid(`snapshot.every must be a positive integer, not ${every}`);
  }
  if (!Number.isInteger(codeVersion) || codeVersion < 1) {
    throw invalid(`snapshot.codeVersion must be a positive integer, not ${codeVersion}`);
  }
  if (afterMs !== undefined && !(afterMs > 0)) {
    throw invalid(`snapshot.afterMs must be greater than 0, not ${afterMs}`);
  }
  return {
    every,
    afterMs,
    codeVersion,
    holdsPersonalData,
    encode: policy.encode ?? ((state) => state),
    decode: policy.decode ?? ((json) => json as State),
  };
}

/** Recursively freezes plain objects and arrays: all aggregates of all tenants share the initial state. */
function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
