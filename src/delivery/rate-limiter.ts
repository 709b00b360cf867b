// The buckets of a process, by key; those that are full are forgotten, so that memory follows what is
// busy, not every tenant that there ever was.

import { freshRate, isFull, takeToken, type RateLimit, type RateState } from './rate-limit.ts';

export interface LimitedKey {
  readonly key: string;
  readonly limit: RateLimit;
}

type Admission =
  | { readonly kind: 'go'; readonly waitMs: number }
  | { readonly kind: 'refused'; readonly backInMs: number };

export interface RateLimiter {
  /** All of the keys or none: a token is taken only when each has one within `waitMsMax`. */
  admit(keys: readonly LimitedKey[], nowMs: number, waitMsMax: number): Admission;
  readonly size: number;
}

/** Swept whenever it has doubled since the last time, so that sweeping costs little per call. */
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
      // Only the line of those that are in the way grows.
      const inTheWay = decisions.filter(({ decision }) => decision.waitMs > waitMsMax);
      for (const { key, decision } of inTheWay) states.set(key, decision.refused);
      const backInMs = Math.max(...inTheWay.map(({ decision }) => decision.backInMs));
      return { kind: 'refused', backInMs };
    },
  };
}
