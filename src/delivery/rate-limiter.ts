// The token buckets of a process, by key. Full ones are removed, so memory is bounded by the active keys.

import { freshRate, isFull, takeToken, type RateLimit, type RateState } from './rate-limit.ts';

export interface LimitedKey {
  readonly key: string;
  readonly limit: RateLimit;
}

type Admission =
  | { readonly kind: 'go'; readonly waitMs: number }
  | { readonly kind: 'refused'; readonly backInMs: number };

export interface RateLimiter {
  /** All keys or none: tokens are taken only if each key has one within `waitMsMax`. */
  admit(keys: readonly LimitedKey[], nowMs: number, waitMsMax: number): Admission;
  readonly size: number;
}

/** Swept when the size has doubled since the last sweep. */
const sweepFrom = 1_024;

export function createRateLimiter(): RateLimiter {
  const states = new Map<string, RateState>();
  let sweepAt = sweepFrom;

  function sweep(nowMs: number): void {
    for (const [key, state] of states) if (isFull(state, nowMs)) states.delete(key);
    sweepAt = Math.max(sweepFrom, states.size * 2);
  }

  return {
    get size() {
      return states.size;
    },
    admit(keys, nowMs, waitMsMax) {
      const decisions = keys.map(({ key, limit }) => ({
        key,
        decision: takeToken(states.get(key) ?? freshRate, limit, nowMs),
      }));
      const waitMs = Math.max(0, ...decisions.map(({ decision }) => decision.waitMs));
      if (states.size >= sweepAt) sweep(nowMs);
      if (waitMs <= waitMsMax) {
        for (const { key, decision } of decisions) states.set(key, decision.taken);
        return { kind: 'go', waitMs };
      }
      // Only the buckets that refused get a longer queue.
      const inTheWay = decisions.filter(({ decision }) => decision.waitMs > waitMsMax);
      for (const { key, decision } of inTheWay) states.set(key, decision.refused);
      const backInMs = Math.max(...inTheWay.map(({ decision }) => decision.backInMs));
      return { kind: 'refused', backInMs };
    },
  };
}
