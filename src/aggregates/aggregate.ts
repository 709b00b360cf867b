// What an aggregate is to everyone who runs one: pure functions over its history.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import type { TenantLookup } from '../contracts/tenant.ts';

/** An event of an aggregate, recorded or just decided: the envelope and its place in the stream. */
export type AggregateEvent<Event extends NewEvent = NewEvent> = Event extends NewEvent
  ? DomainEventEnvelope<Event['payload']> & {
      readonly type: Event['type'];
      readonly stream: string;
      readonly revision: number;
    }
  : never;

/** The part of an event's or command's definition that an aggregate needs, whatever its payload. */
export interface Named<Agg extends string = string> {
  readonly type: `${Agg}.${string}`;
  readonly agg: string;
  readonly schema: StandardSchemaV1;
  parse(payload: unknown): unknown;
}

/** What a decision may know beside the command and the state; time and chance come from here. */
export interface DecideContext {
  readonly tenant: string;
  readonly id: string;
  /** Of the last event behind the state; −1: nothing has happened yet. */
  readonly revision: number;
  readonly nowMs: number;
  readonly commandId: string;
  readonly correlationId: string;
  readonly user?: NonNullable<DomainEventEnvelope['user']>;
  readonly headers?: Readonly<Record<string, unknown>>;
  /** An id for something that the decision creates; a command with a key gets the same ones again. */
  readonly nextId: () => string;
}

/** When snapshots are taken, and what makes an old one worthless. */
export interface SnapshotPolicy<State> {
  /** Taken when this many events have happened since the last one. */
  readonly every: number;
  /** Also taken when something has happened and the last one is older than this. */
  readonly afterMs: number | undefined;
  /** Raised whenever `evolve` changes: snapshots of another version are ignored and replaced. */
  readonly codeVersion: number;
  /**
   * Whether the state keeps anything of events that carry a data subject. Forgetting a person
   * destroys the key of the events, not a snapshot: as long as this is true (the default), the
   * state of an aggregate with such events is never written down.
   */
  readonly holdsPersonalData: boolean;
  /** To JSON and back, for states that hold more than JSON can (dates, maps, big integers). */
  encode(state: State): unknown;
  decode(json: unknown): State;
}

/** Made by `defineAggregate`; given to `createCommandHandler` and to `given`. */
export interface Aggregate<State, Event extends NewEvent, Command extends NewCommand> {
  readonly bc: string;
  readonly name: string;
  readonly version: number;
  /** The name of one's stream. */
  streamOf(tenant: string, id: string, tenants?: TenantLookup): string;
  /** What it can decide and what can happen to it, for whoever describes it to others. */
  readonly commands: readonly Named[];
  readonly events: readonly Named[];
  readonly initial: State;
  readonly snapshot: SnapshotPolicy<State>;
  /** Whose personal data its events hold; absent: what the headers of a command say. */
  readonly dataSubject?: (tenant: string, id: string) => string;

  /** Checks a command from outside: its type is one of ours, its payload fits the schema. */
  parseCommand(command: NewCommand): Command;
  /** What happens; throws `Refused` when a rule forbids it. */
  decide(command: Command, state: State, context: DecideContext): readonly Event[];
  /** The event in its newest version; undefined: unknown, and to be skipped. */
  interpret(event: AggregateEvent): AggregateEvent<Event> | undefined;
  /** What an event, of any version, means for the state. */
  evolve(state: State, event: AggregateEvent): State;
}
