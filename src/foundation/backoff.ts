// Delays between attempts: pure decisions that loops and ledgers carry out.

export interface BackoffPolicy {
  readonly initialMs: number;
  readonly factor: number;
  readonly capMs: number;
  /** Up to this much is added at random, so that many failures are not retried at the same time. */
  readonly jitterMs: number;
  /** The total number of attempts, including the first. */
  readonly attemptsMax: number;
}

/** 1, 2, 4, 8, 16 s, then the dead letter: six attempts in total. */
export const eventFlowBackoff: BackoffPolicy = {
  initialMs: 1_000,
  factor: 2,
  capMs: 16_000,
  jitterMs: 0,
  attemptsMax: 6,
};

/** min(60 s · 2^(n−1), 15 min) + 0..10 s, ten attempts in total. */
export const outboxBackoff: BackoffPolicy = {
  initialMs: 60_000,
  factor: 2,
  capMs: 15 * 60_000,
  jitterMs: 10_000,
  attemptsMax: 10,
};

/** The decision after a failed attempt. */
export type NextAttempt =
  | { readonly kind: 'retry'; readonly attempt: number; readonly atMs: number }
  | { readonly kind: 'give-up'; readonly attempts: number };

/**
 * The delay after the n-th failed attempt (n starts at 1). `random` is in [0, 1).
 *
 * @example
 * import { backoffMs, eventFlowBackoff } from 'millrace/foundation';
 *
 * console.log([1, 2, 3, 4, 5].map((n) => backoffMs(eventFlowBackoff, n))); // 1000 … 16000
 */
export function backoffMs(policy: BackoffPolicy, failures: number, random = Math.random()): number {
  const exponent = Math.max(0, failures - 1);
  // A large exponent overflows to Infinity, which the cap turns back into a number.
  const base = Math.min(policy.initialMs * policy.factor ** exponent, policy.capMs);
  return base + Math.floor(random * (policy.jitterMs + 1));
}

/**
 * Decides whether failed attempt number `failures` is followed by another one, and when.
 *
 * @example
 * import { nextAttempt, outboxBackoff } from 'millrace/foundation';
 *
 * const next = nextAttempt(outboxBackoff, { failures: 1, nowMs: 0 });
 * if (next.kind === 'retry') console.log(next.atMs >= 60_000); // true
 */
export function nextAttempt(
  policy: BackoffPolicy,
  state: {
    readonly failures: number;
    readonly nowMs: number;
    readonly random?: number | undefined;
  },
): NextAttempt {
  if (state.failures >= policy.attemptsMax) return { kind: 'give-up', attempts: state.failures };
  const waitMs = backoffMs(policy, state.failures, state.random ?? Math.random());
  return { kind: 'retry', attempt: state.failures + 1, atMs: state.nowMs + waitMs };
}
