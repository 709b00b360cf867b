// Token buckets for all rate limits: callers store one number per bucket. Pure.

/** A bucket holds `count` tokens and refills evenly: an empty one is full again after `perMs`. */
export interface TokenBucket {
  readonly count: number;
  readonly perMs: number;
}

export interface TokenRequest extends TokenBucket {
  /** The state of the bucket: when it is full again. 0 is a full bucket. */
  readonly fullAtMs: number;
  readonly nowMs: number;
  readonly wanted: number;
}

/**
 * How long to wait until all `wanted` tokens are available, and the state of the bucket once they are taken.
 * A caller that stores `fullAtMs` although `waitMs` is above 0 has reserved tokens that are not refilled yet.
 *
 * @example
 * import { reserveTokens } from 'millrace/foundation';
 *
 * const bucket = { count: 1, perMs: 1_000 };
 * const first = reserveTokens({ ...bucket, fullAtMs: 0, nowMs: 5_000, wanted: 1 });
 * const second = reserveTokens({ ...bucket, ...first, nowMs: 5_000, wanted: 1 });
 * console.log(first.waitMs, second.waitMs); // 0 1000
 */
export function reserveTokens({ count, perMs, fullAtMs, nowMs, wanted }: TokenRequest): {
  readonly waitMs: number;
  readonly fullAtMs: number;
} {
  const afterMs = Math.max(fullAtMs, nowMs) + (wanted * perMs) / count;
  return { waitMs: Math.max(0, afterMs - perMs - nowMs), fullAtMs: afterMs };
}

/**
 * How many of the `wanted` tokens are available now, and the state of the bucket once they are taken. The Lua
 * scripts of the Redis task engine calculate the same.
 *
 * @example
 * import { takeTokens } from 'millrace/foundation';
 *
 * const first = takeTokens({ fullAtMs: 0, nowMs: 1_000, wanted: 5, count: 3, perMs: 60_000 });
 * console.log(first.taken, first.freeAtMs); // 3 21000
 */
export function takeTokens(request: TokenRequest): {
  readonly taken: number;
  readonly fullAtMs: number;
  /** When the next token is available, if fewer were taken than wanted; else `nowMs`. */
  readonly freeAtMs: number;
} {
  const { count, perMs, nowMs, wanted } = request;
  const missingMs = Math.max(0, request.fullAtMs - nowMs);
  // The tolerance keeps rounding errors of fractions from withholding the last token.
  const available = Math.floor(((perMs - missingMs) * count) / perMs + 1e-6);
  const taken = Math.max(0, Math.min(wanted, available));
  const { fullAtMs } = taken === 0 ? request : reserveTokens({ ...request, wanted: taken });
  const { waitMs } = reserveTokens({ ...request, fullAtMs, wanted: 1 });
  return { taken, fullAtMs, freeAtMs: taken < wanted ? Math.ceil(nowMs + waitMs) : nowMs };
}
