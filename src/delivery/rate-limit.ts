// Rate limits of destinations and callers: token buckets of this process, by key.

import { MillraceError } from '../foundation/error.ts';
import { reserveTokens, type TokenBucket } from '../foundation/token-bucket.ts';

export interface RateLimit {
  readonly perSecond: number;
  /** How many may go at once after a pause. Default: one second's worth, at least one. */
  readonly burst?: number | undefined;
}

export function checkRateLimit(limit: RateLimit, where: string): void {
  const isValid =
    Number.isFinite(limit.perSecond) &&
    limit.perSecond > 0 &&
    (limit.burst === undefined || (Number.isInteger(limit.burst) && limit.burst >= 1));
  if (isValid) return;
  throw new MillraceError(
    'CONFIG_INVALID',
    `${where}: perSecond must be greater than 0 and burst a positive integer`,
    { details: { limit } },
  );
}

export function bucketOf({ perSecond, burst }: RateLimit): TokenBucket {
  const count = burst ?? Math.max(1, Math.floor(perSecond));
  return { count, perMs: (count * 1_000) / perSecond };
}

export interface LimitedKey {
  readonly key: string;
  readonly limit: RateLimit;
}

type Admission =
  | { readonly kind: 'go'; readonly waitMs: number }
  | { readonly kind: 'rejected'; readonly backInMs: number };

export interface RateLimiter {
  /** Takes one token of every key, or of none if one of them has none within `waitMsMax`. */
  admit(keys: readonly LimitedKey[], nowMs: number, waitMsMax: number): Admission;
  readonly size: number;
}

interface KeyState {
  readonly fullAtMs: number;
  /** The retry time of the last rejected caller. */
  readonly queueEndMs: number;
}

/** Swept whenever the map has doubled since the last sweep, so the cost per call stays constant. */
const sweepFrom = 1_024;

export function createRateLimiter(): RateLimiter {
  const states = new Map<string, KeyState>();
  let sweepAt = sweepFrom;

  function sweep(nowMs: number): void {
    for (const [key, { fullAtMs, queueEndMs }] of states) {
      if (Math.max(fullAtMs, queueEndMs) <= nowMs) states.delete(key);
    }
    sweepAt = Math.max(sweepFrom, states.size * 2);
  }

  return {
    get size() {
      return states.size;
    },
    admit(keys, nowMs, waitMsMax) {
      const reserved = keys.map(({ key, limit }) => {
        const state = states.get(key) ?? { fullAtMs: 0, queueEndMs: 0 };
        const bucket = bucketOf(limit);
        const { fullAtMs } = state;
        return { key, state, bucket, ...reserveTokens({ ...bucket, fullAtMs, nowMs, wanted: 1 }) };
      });
      const waitMs = Math.max(0, ...reserved.map((each) => each.waitMs));
      if (states.size >= sweepAt) sweep(nowMs);
      if (waitMs <= waitMsMax) {
        for (const { key, state, fullAtMs } of reserved) states.set(key, { ...state, fullAtMs });
        return { kind: 'go', waitMs };
      }
      // Each rejected caller gets a later time than the one before; otherwise all would retry at once.
      let backInMs = 0;
      for (const { key, state, bucket, waitMs: keyWaitMs } of reserved) {
        if (keyWaitMs <= waitMsMax) continue;
        const afterMs = Math.max(state.queueEndMs, nowMs + keyWaitMs);
        const queueEndMs = afterMs + bucket.perMs / bucket.count;
        states.set(key, { ...state, queueEndMs });
        backInMs = Math.max(backInMs, Math.ceil(queueEndMs - nowMs));
      }
      return { kind: 'rejected', backInMs };
    },
  };
}
