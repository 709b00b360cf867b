// The types of an aggregate: the definition that a user writes, and the pure functions made from it.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { CommandOf, NewCommand } from '../contracts/define-command.ts';
import type { EventOf } from '../contracts/define-event.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import type { Identifier } from '../contracts/identifier.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Forgotten } from '../store/erasure.ts';

/** An event of an aggregate, stored or just decided: the envelope, its stream and its revision. */
export type AggregateEvent<Event extends NewEvent = NewEvent> = Event extends NewEvent
  ? DomainEventEnvelope<Event['payload']> & {
      readonly type: Event['type'];
      readonly stream: string;
      readonly revision: number;
    }
  : never;

/** The part of an event or command definition that an aggregate needs, whatever the payload. */
export interface Named<Agg extends string = string> {
  readonly type: `${Agg}.${string}`;
  readonly agg: string;
  readonly schema: StandardSchemaV1;
  parse(payload: unknown): unknown;
}

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

/** When snapshots are taken, and when an existing one is ignored. */
export interface SnapshotPolicy<State> {
  /** A snapshot is taken after this many events since the last one. */
  readonly every: number;
  /** A snapshot is also taken when there are new events and the last snapshot is older than this. */
  readonly afterMs: number | undefined;
  /** Increase it whenever `evolve` changes: snapshots of another version are ignored and replaced. */
  readonly codeVersion: number;
  /**
   * Whether the state contains data from events that carry a data subject. Forgetting a person
   * destroys the key of the events, not a snapshot: while this is true (the default), the
   * state of an aggregate with such events is never stored.
   */
  readonly holdsPersonalData: boolean;
  /** Convert the state to JSON and back, for states with dates, maps or big integers. */
  encode(state: State): unknown;
  decode(json: unknown): State;
}

/** Created by `defineAggregate`; used by `createCommandHandler` and `given`. */
export interface Aggregate<State, Event extends NewEvent, Command extends NewCommand> {
  readonly bc: string;
  readonly name: string;
  readonly version: number;
  /** The stream name of one aggregate instance. */
  streamOf(tenant: string, id: string, tenants?: TenantLookup): string;
  /** All command and event definitions, for generated descriptions such as OpenAPI. */
  readonly commands: readonly Named[];
  readonly events: readonly Named[];
  readonly initial: State;
  readonly snapshot: SnapshotPolicy<State>;
  /** The data subject of all events; absent: the command's headers decide. */
  readonly dataSubject?: ((tenant: string, id: string) => string) | undefined;

  /** Checks an external command: the type is known and the payload matches the schema. */
  parseCommand(command: NewCommand): Command;
  /** Returns the resulting events; throws `Refused` when a business rule rejects the command. */
  decide(command: Command, state: State, context: DecideContext): readonly Event[];
  /** Returns the event in its newest version; undefined: unknown type, skip the event. */
  interpret(event: AggregateEvent): AggregateEvent<Event> | undefined;
  /** Applies an event of any version to the state. */
  evolve(state: State, event: AggregateEvent): State;
}

/** Converts the payload of an older event type into the next one; created by `upcast`. */
export interface Upcaster {
  readonly from: string;
  readonly to: string;
  readonly convert: (payload: unknown) => unknown;
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
