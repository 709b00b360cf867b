// Decides what follows a failed attempt: a retry at a given time, or a dead letter.

import { nextAttempt, type BackoffPolicy } from '../../foundation/backoff.ts';
import { hasCode } from '../../foundation/error.ts';
import { outcomeOf } from '../../foundation/handler-outcome.ts';

export type RetryDecision =
  /** `failures` includes this attempt if it counts as one. */
  | { readonly kind: 'retry'; readonly atMs: number; readonly failures: number }
  | { readonly kind: 'dead-letter'; readonly failures: number };

export interface FailedAttempt {
  readonly error: unknown;
  /** Failures before this one. */
  readonly failures: number;
  readonly nowMs: number;
  readonly random?: number | undefined;
}

/**
 * Decides between a retry and a dead letter, without side effects.
 *
 * @example
 * import { eventFlowBackoff } from 'millrace/foundation';
 * import { decideRetry } from 'millrace/subscriptions';
 *
 * const decision = decideRetry(eventFlowBackoff, { error: new Error('timeout'), failures: 0, nowMs: 0 });
 * console.log(decision); // { kind: 'retry', atMs: 1000, failures: 1 }
 */
export function decideRetry(policy: BackoffPolicy, failed: FailedAttempt): RetryDecision {
  const { error, nowMs } = failed;
  const outcome = outcomeOf(error);
  if (outcome.kind === 'snooze') {
    return { kind: 'retry', atMs: nowMs + outcome.ms, failures: failed.failures };
  }
  // An unavailable database is not a failure of the event, and the outage may be long.
  if (hasCode(error, 'STORE_UNAVAILABLE') && error.retryable) {
    return { kind: 'retry', atMs: nowMs + policy.initialMs, failures: failed.failures };
  }
  const failures = failed.failures + 1;
  if (outcome.kind === 'terminal') return { kind: 'dead-letter', failures };
  const next = nextAttempt(policy, { failures, nowMs, random: failed.random });
  if (next.kind === 'give-up') return { kind: 'dead-letter', failures };
  const atMs = outcome.kind === 'retry-after' ? nowMs + outcome.ms : next.atMs;
  return { kind: 'retry', atMs, failures };
}
