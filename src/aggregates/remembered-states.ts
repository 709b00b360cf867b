// A cache of recently used aggregate states, as JSON: the next command need not read the history again.
// Each recall decodes a private copy, and an append detects a stale state.

import type { SnapshotPolicy } from './snapshots.ts';
import { encodeState } from './snapshots.ts';

/** A cached state and where it came from. */
export interface RememberedState<State> {
  readonly tenant: string;
  readonly state: State;
  readonly revision: number;
  readonly eventId: string;
  /** Revision of the snapshot that the state was loaded from; −1: from the initial state. */
  readonly snapshotRevision: number;
  readonly sinceMs: number | undefined;
}

export interface RememberedStates<State> {
  recall(stream: string): RememberedState<State> | undefined;
  /** Must not get states with personal data: forgetting a person does not clear this cache. */
  remember(stream: string, remembered: RememberedState<State>): void;
  evict(stream: string): void;
}

export const rememberedLimits = {
  /** Encoding a longer state with every command costs more than the cache saves. */
  stateCharsMax: 16_384,
  charsMax: 8_388_608,
  statesMax: 10_000,
  /** A state that was too long is tried again after this many events. */
  longForEvents: 100,
} as const;

type CachedState = Omit<RememberedState<unknown>, 'state'> & { readonly json: string | undefined };

export function createRememberedStates<State>(
  policy: SnapshotPolicy<State>,
): RememberedStates<State> {
  /** In order of last use. */
  const states = new Map<string, CachedState>();
  let chars = 0;

  function evict(stream: string): void {
    chars -= states.get(stream)?.json?.length ?? 0;
    states.delete(stream);
  }

  function jsonOf(state: State): string | undefined {
    try {
      const json = JSON.stringify(encodeState(policy, state));
      return json.length > rememberedLimits.stateCharsMax ? undefined : json;
    } catch {
      // A state that JSON cannot represent is not cached; its stream is read for each command.
      return undefined;
    }
  }

  return {
    recall(stream) {
      const cached = states.get(stream);
      if (cached?.json === undefined) return undefined;
      states.delete(stream);
      states.set(stream, cached);
      const { json, ...rest } = cached;
      try {
        return { ...rest, state: policy.decode(JSON.parse(json)) };
      } catch {
        // The state is read from its events instead; unreadable snapshots are logged when loaded.
        return undefined;
      }
    },
    remember(stream, { state, ...rest }) {
      const before = states.get(stream);
      if (before !== undefined) {
        // A slow read may finish after a newer append.
        const isNewer = rest.revision > before.revision;
        const isLong = before.json === undefined;
        const tooEarly = rest.revision < before.revision + rememberedLimits.longForEvents;
        if (!isNewer || (isLong && tooEarly)) return;
      }
      evict(stream);
      const json = jsonOf(state);
      states.set(stream, { ...rest, json });
      chars += json?.length ?? 0;
      for (const [oldest] of states) {
        const isFull =
          chars > rememberedLimits.charsMax || states.size > rememberedLimits.statesMax;
        if (!isFull) break;
        evict(oldest);
      }
    },
    evict,
  };
}
