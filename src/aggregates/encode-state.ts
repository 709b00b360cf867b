// A state may become a snapshot only if JSON gives back what it was given.

import { encodePayload } from '../contracts/json-payload.ts';
import { MillraceError } from '../foundation/error.ts';
import type { SnapshotPolicy } from './aggregate.ts';

export const snapshotLimits = {
  stateBytesMax: 16 * 1_048_576,
  stateDepthMax: 100,
  /** Streams whose snapshot waits to be written; more are left for a later command to take. */
  waitingMax: 1_000,
  writersMax: 2,
  /** How long `flush` and dispose wait for the last ones. */
  flushMs: 5_000,
} as const;

/** The JSON value of a state, or an error that names the part which JSON would change. */
export function encodeState<State>(policy: SnapshotPolicy<State>, state: State): unknown {
  const value = policy.encode(state);
  const { stateBytesMax: payloadBytesMax, stateDepthMax: payloadDepthMax } = snapshotLimits;
  encodePayload(value, { payloadBytesMax, payloadDepthMax });
  assertOwnForm(value);
  return value;
}

/** A date would come back as text, and `evolve` would meet a type that it does not expect. */
function assertOwnForm(value: unknown): void {
  JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key, member: unknown) {
    if (this[key] === member) return member;
    throw new MillraceError(
      'PAYLOAD_NOT_JSON',
      `'${key}' of the state turns into something else as JSON: give snapshot.encode and decode`,
      { details: { key } },
    );
  });
}
