// What a user writes down to define an aggregate; the types make sure that nothing is missing.

import type { CommandOf, NewCommand } from '../contracts/define-command.ts';
import type { EventOf } from '../contracts/define-event.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Identifier } from '../contracts/identifier.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Forgotten } from '../store/erasure.ts';
import type { AggregateEvent, DecideContext, Named, SnapshotPolicy } from './aggregate.ts';
import type { Upcaster } from './upcast.ts';

// Over the names and not `[Each in Event as Each['type']]`: through a renamed key TypeScript does not
// tell a handler the types of its parameters.

/** By event type, what the event means for the state. */
export type EvolveMap<State, Event extends NewEvent> = {
  readonly [Type in Event['type']]: (
    state: State,
    payload: Extract<Event, { readonly type: Type }>['payload'],
    event: AggregateEvent<Extract<Event, { readonly type: Type }>>,
  ) => State;
};

/** By command type, what happens; a list may be empty. */
export type DecideMap<State, Event extends NewEvent, Command extends NewCommand> = {
  readonly [Type in Command['type']]: (
    payload: Extract<Command, { readonly type: Type }>['payload'],
    state: State,
    context: DecideContext,
  ) => Event | readonly Event[];
};

/** Pure; refuses what would read back as another tenant's. */
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
  /** Of the stream's category; raised when a new history begins, not when an event changes. */
  readonly version: number;
  /**
   * Where its streams had names before ours: the whole name, `<category>-<tenant>-<id>`, with no hyphen in
   * the category. Default: `<bc>.<name>.v<version>-<tenant>-<id>`.
   */
  readonly streamName?: StreamNaming;
  readonly events: Events;
  readonly commands: Commands;
  /** The state before anything happened. It is frozen: `evolve` returns a new state. */
  readonly initial: State;
  readonly evolve: EvolveMap<NoInfer<State>, EventOf<Events[number]>>;
  readonly decide: DecideMap<NoInfer<State>, EventOf<Events[number]>, CommandOf<Commands[number]>>;
  /**
   * Whose personal data its events hold: all of them are sealed with that person's key, whoever sends the
   * command. Default: those of commands whose headers name somebody.
   */
  readonly dataSubject?: (tenant: string, id: string) => string;
  /** Every 100 events, code version 1, unless told otherwise. */
  readonly snapshot?: Partial<SnapshotPolicy<NoInfer<State>>>;
  readonly upcasters?: readonly Upcaster[];
  /** What to do with a stored type that is neither an event nor upcast to one. Default: `fail`. */
  readonly unknownEvents?: 'fail' | 'skip';
  /** `evolve` sees real payloads only; this sees events whose payload was erased. Default: skip. */
  readonly forgotten?: (
    state: NoInfer<State>,
    event: AggregateEvent<ForgottenEvent>,
  ) => NoInfer<State>;
}
