// States of aggregates that had a command a moment ago, as JSON: the next one need not read their history
// again. As with a snapshot, what comes out is nobody else's, and the stream has the last word.

import type { SnapshotPolicy } from './aggregate.ts';
import { encodeState } from './encode-state.ts';

/** A state, and what is known of how it came about. */
export interface RememberedState<State> {
  readonly state: State;
  readonly revision: number;
  readonly eventId: string;
  /** As of `Rehydrated`. */
  readonly snapshotRevision: number;
  readonly sinceMs: number | undefined;
}

export interface RememberedStates<State> {
  recall(stream: string): RememberedState<State> | undefined;
  /** States with personal data are not given here: forgetting a person must not have to look here. */
  remember(stream: string, remembered: RememberedState<State>): void;
  forget(stream: string): void;
}

export const rememberedLimits = {
  /** Longer ones cost more to write down with every command than they save. */
  stateCharsMax: 16_384,
  charsMax: 8_388_608,
  statesMax: 10_000,
  /** One that was too long is looked at again after so many events. */
  longForEvents: 100,
} as const;

type Kept = Omit<RememberedState<unknown>, 'state'> & { readonly json: string | undefined };

export function createRememberedStates<State>(
  policy: SnapshotPolicy<State>,
): RememberedStates<State> {
  /** The one that was used last comes last. */
  const states = new Map<string, Kept>();
  let chars = 0;

  function forget(stream: string): void {
    chars -= states.get(stream)?.json?.length ?? 0;
    states.delete(stream);
  }

  function jsonOf(state: State): string | undefined {
    try {
      const json = JSON.stringify(encodeState(policy, state));
      return json.length > rememberedLimits.stateCharsMax ? undefined : json;
    } catch {
      // What JSON would change cannot be kept: such aggregates are read each time, as ever.
      return undefined;
    }
  }

  return {
    recall(stream) {
      const kept = states.get(stream);
      if (kept?.json === undefined) return undefined;
      states.delete(stream);
      states.set(stream, kept);
      const { json, ...rest } = kept;
      try {
        return { ...rest, state: policy.decode(JSON.parse(json)) };
      } catch {
        // Its events tell it, too; of a snapshot that cannot be read the log tells.
        return undefined;
      }
    },
    remember(stream, { state, ...rest }) {
      const before = states.get(stream);
      if (before !== undefined) {
        // What was read a while ago may come in behind what was appended since.
        const isNewer = rest.revision > before.revision;
        const isLong = before.json === undefined;
        const tooEarly = rest.revision < before.revision + rememberedLimits.longForEvents;
        if (!isNewer || (isLong && tooEarly)) return;
      }
      forget(stream);
      const json = jsonOf(state);
      states.set(stream, { ...rest, json });
      chars += json?.length ?? 0;
      for (const [oldest] of states) {
        const isFull =
          chars > rememberedLimits.charsMax || states.size > rememberedLimits.statesMax;
        if (!isFull) break;
        forget(oldest);
      }
    },
    forget,
  };
}
