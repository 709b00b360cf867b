// How often something may happen: a token bucket, kept as the one time at which it is full again. Pure.

import { MillraceError } from '../foundation/error.ts';

export interface RateLimit {
  readonly perSecond: number;
  /** How many may go at once after a pause. Default: a second's worth, at least one. */
  readonly burst?: number;
}

/** Milliseconds of the epoch; a bucket that nobody took from is full: 0 says so. */
export interface RateState {
  /** When all tokens that were given out will have come back. */
  readonly fullAtMs: number;
  /** Where the line of those ends that were sent away; each comes back at a time of its own. */
  readonly lineEndMs: number;
}

export const freshRate: RateState = { fullAtMs: 0, lineEndMs: 0 };

/** What `takeToken` found: wait this long and then go, with what the bucket is after that. */
export interface RateDecision {
  readonly waitMs: number;
  readonly taken: RateState;
  /** When to come back instead of waiting, and what the bucket is then. */
  readonly backInMs: number;
  readonly refused: RateState;
}

/** Decides nothing yet: the caller takes the token (`taken`) or goes away (`refused`). */
export function takeToken(state: RateState, limit: RateLimit, nowMs: number): RateDecision {
  const intervalMs = 1_000 / limit.perSecond;
  const burst = limit.burst ?? Math.max(1, Math.floor(limit.perSecond));
  const fullAtMs = Math.max(state.fullAtMs, nowMs);
  // It may go once at most burst − 1 tokens are out.
  const waitMs = Math.max(0, fullAtMs - (burst - 1) * intervalMs - nowMs);
  // Who is sent away comes back behind all who were before, else all of them would come at once.
  const lineEndMs = Math.max(state.lineEndMs, nowMs + waitMs) + (waitMs > 0 ? intervalMs : 0);
  return {
    waitMs,
    taken: { ...state, fullAtMs: fullAtMs + intervalMs },
    backInMs: Math.ceil(lineEndMs - nowMs),
    refused: { ...state, lineEndMs },
  };
}

/** Nothing about it needs to be remembered any more. */
export function isFull(state: RateState, nowMs: number): boolean {
  return state.fullAtMs <= nowMs && state.lineEndMs <= nowMs;
}

export function checkRateLimit(limit: RateLimit, where: string): void {
  const isGood =
    Number.isFinite(limit.perSecond) &&
    limit.perSecond > 0 &&
    (limit.burst === undefined || (Number.isInteger(limit.burst) && limit.burst >= 1));
  if (isGood) return;
  throw new MillraceError(
    'CONFIG_INVALID',
    `${where}: perSecond must be above 0 and burst a whole number from 1 on`,
    { details: { limit } },
  );
}
