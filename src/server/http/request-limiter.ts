// How many requests one caller may make: one token bucket per API token or address, dropped once it is full.

import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { reserveTokens } from '../../foundation/token-bucket.ts';
import { bucketOf, checkRateLimit, type RateLimit } from '../../delivery/rate-limit.ts';
import type { Caller } from './http-server.ts';

export interface RequestLimits {
  /** Per caller with credentials. Default: 1,000 per second. */
  readonly known: RateLimit;
  /** Per address without credentials. Default: 50 per second. */
  readonly unknown: RateLimit;
}

const requestLimits: RequestLimits = {
  known: { perSecond: 1_000, burst: 2_000 },
  unknown: { perSecond: 50, burst: 200 },
};

const callersMax = 100_000;

export function createRequestLimiter(
  limits: RequestLimits = requestLimits,
  clock: Clock = systemClock,
): (caller: Caller) => void {
  checkRateLimit(limits.known, 'known callers');
  checkRateLimit(limits.unknown, 'unknown callers');
  const buckets = { known: bucketOf(limits.known), unknown: bucketOf(limits.unknown) };
  const fullAt = new Map<string, number>();

  function makeRoom(nowMs: number): void {
    for (const [key, fullAtMs] of fullAt) if (fullAtMs <= nowMs) fullAt.delete(key);
    // All buckets are in use: drop the oldest one.
    const [oldest] = fullAt.keys();
    if (fullAt.size >= callersMax && oldest !== undefined) fullAt.delete(oldest);
  }

  return ({ address, principal }) => {
    // JWT subjects are unique per tenant only, so the key contains the tenant.
    const key =
      principal === undefined
        ? `address ${address}`
        : `${principal.kind} ${principal.tenant ?? '*'} ${principal.name}`;
    const nowMs = clock.now();
    if (!fullAt.has(key) && fullAt.size >= callersMax) makeRoom(nowMs);
    const bucket = principal === undefined ? buckets.unknown : buckets.known;
    const state = { fullAtMs: fullAt.get(key) ?? 0, nowMs, wanted: 1 };
    const { waitMs, fullAtMs } = reserveTokens({ ...bucket, ...state });
    if (waitMs === 0) {
      fullAt.set(key, fullAtMs);
      return;
    }
    throw new MillraceError('RATE_LIMITED', 'too many requests', {
      details: { retryAfterSeconds: Math.ceil(waitMs / 1_000) },
    });
  };
}
