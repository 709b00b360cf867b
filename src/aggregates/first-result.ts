// What a command with an idempotency key did the first time: a repeat gets exactly that.

import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { AggregateEvent } from './aggregate.ts';
import { aggregateError } from './aggregate-error.ts';
import type { CommandIdentity } from './command-identity.ts';
import type { CommandResult } from './command-handler.ts';
import type { KeyUse } from './key-claims.ts';
import { rehydrate, type RehydrateSource } from './rehydrate.ts';

/** The header of an event that names the command which made it happen. */
export const commandHeader = 'command';

/** Undefined: nothing was ever recorded under this key in this stream. */
export async function firstResult<State, Event extends NewEvent, Command extends NewCommand>(
  source: RehydrateSource<State, Event, Command>,
  use: KeyUse,
  identity: CommandIdentity,
  signal: AbortSignal | undefined,
): Promise<CommandResult<State, Event> | undefined> {
  const { store, aggregate } = source;
  const recorded: RecordedEvent[] = [];
  // By id, not by reading on: retention may hide some of them, and each is one look into an index.
  for (;;) {
    const event = await store.findEvent(use.stream, identity.eventId(recorded.length));
    if (event === undefined) break;
    recorded.push(event);
  }
  const last = recorded.at(-1);
  if (last === undefined) return undefined;
  assertSameUse(use, { stream: last.stream, command: commandOf(last) }, identity.key);
  const { stream } = use;
  const then = await rehydrate(source, { stream, through: last.revision, signal });
  // Where retention has hidden the history up to then, the state of today is the best there is.
  const isKnown = then.complete || then.snapshotRevision !== -1;
  const { state } = isKnown ? then : await rehydrate(source, { stream, signal });
  const events = recorded.flatMap((event) => aggregate.interpret(toAggregateEvent(event)) ?? []);
  return { state, events, revision: last.revision, position: last.position, repeated: true };
}

/** One key, one intent: whoever sends another one under it made a mistake that must not be hidden. */
export function assertSameUse(wanted: KeyUse, held: KeyUse, key: string | undefined): void {
  if (wanted.stream === held.stream && wanted.command === held.command) return;
  throw aggregateError(
    'COMMAND_KEY_REUSED',
    `idempotency key '${key}' was used for '${held.command}' on '${held.stream}' before`,
    { details: { idempotencyKey: key, ...held } },
  );
}

function commandOf({ headers }: RecordedEvent): string {
  const command = headers?.[commandHeader];
  return typeof command === 'string' ? command : '';
}

function toAggregateEvent(recorded: RecordedEvent): AggregateEvent {
  const { position: _position, recordedAt: _recordedAt, ...event } = recorded;
  return event;
}
