// Rate limits per caller: a token bucket for each token or address, removed when it is full.

import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import {
  checkRateLimit,
  freshRate,
  isFull,
  takeToken,
  type RateLimit,
  type RateState,
} from '../../delivery/rate-limit.ts';
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
  const states = new Map<string, RateState>();

  function makeRoom(nowMs: number): void {
    for (const [key, state] of states) if (isFull(state, nowMs)) states.delete(key);
    // All buckets are in use: the oldest is reset.
    const [oldest] = states.keys();
    if (states.size >= callersMax && oldest !== undefined) states.delete(oldest);
  }

  return ({ address, principal }) => {
    // Includes the tenant, so that equal JWT names of two tenants have separate limits.
    const key =
      principal === undefined
        ? `address ${address}`
        : `${principal.kind} ${principal.tenant ?? '*'} ${principal.name}`;
    const nowMs = clock.now();
    const state = states.get(key);
    if (state === undefined && states.size >= callersMax) makeRoom(nowMs);
    const limit = principal === undefined ? limits.unknown : limits.known;
    const { waitMs, taken } = takeToken(state ?? freshRate, limit, nowMs);
    if (waitMs === 0) {
      states.set(key, taken);
      return;
    }
    throw new MillraceError('RATE_LIMITED', 'too many requests', {
      details: { retryAfterSeconds: Math.ceil(waitMs / 1_000) },
    });
  };
}
