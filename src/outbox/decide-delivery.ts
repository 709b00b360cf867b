// What follows from an attempt to deliver: pure decisions that the dispatcher carries out.

import { backoffMs, outboxBackoff, type BackoffPolicy } from '../foundation/backoff.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import { lastErrorText } from './check-outbox.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';

/** What a delivery says became of the message; what else a destination tells is not the ledger's. */
export type DeliveryResult =
  | { readonly kind: 'sent' }
  | {
      readonly kind: 'retry';
      readonly error: string;
      /** The receiver's wish (Retry-After). */
      readonly afterMs?: number;
      /** False: nothing was sent (a rate limit, an open breaker); it does not count as an attempt. */
      readonly attempted?: boolean;
    }
  | { readonly kind: 'dead'; readonly error: string };

/** When to try again. How often is the message's own `maxAttempts`. */
export type RetrySchedule = Omit<BackoffPolicy, 'attemptsMax'> & {
  /** No receiver's wish puts a message off for longer. Default: 24 h. */
  readonly retryAfterMsMax?: number;
};

/**
 * What the ledger is to write down after an attempt: the next time is the later one of backoff and the
 * receiver's wish, the last attempt's failure is the dead letter.
 *
 * @example
 * import { decideDelivery, type ClaimedMessage } from 'millrace/outbox';
 *
 * const afterTimeout = (message: ClaimedMessage) =>
 *   decideDelivery(message, { kind: 'retry', error: 'timeout' }, { nowMs: Date.now() });
 */
export function decideDelivery(
  message: ClaimedMessage,
  result: DeliveryResult,
  context: {
    readonly nowMs: number;
    readonly schedule?: RetrySchedule | undefined;
    /** In [0, 1). */
    readonly random?: number;
  },
): OutboxOutcome {
  const claim = { id: message.id, token: message.token };
  // To return is to have sent it, whatever a short function happens to return.
  if (result.kind !== 'retry' && result.kind !== 'dead') return { kind: 'sent', claim };
  const error = lastErrorText(result.error);
  if (result.kind === 'dead') return { kind: 'dead', claim, error };
  const { nowMs, random = Math.random() } = context;
  const schedule: RetrySchedule = context.schedule ?? outboxBackoff;
  const askedMs = Math.min(
    Math.max(0, result.afterMs ?? 0),
    schedule.retryAfterMsMax ?? limits.retryAfterMsMax,
  );
  if (result.attempted === false) {
    const waitMs = Math.max(askedMs, notTriedMs);
    return { kind: 'released', claim, dueAt: new Date(nowMs + waitMs) };
  }
  const failures = message.attempts + 1;
  if (failures >= message.maxAttempts) return { kind: 'dead', claim, error };
  const policy = { ...schedule, attemptsMax: message.maxAttempts };
  const waitMs = Math.max(backoffMs(policy, failures, random), askedMs);
  return { kind: 'failed', claim, error, nextDueAt: new Date(nowMs + waitMs) };
}

/** A destination that refuses to try must not be asked in a tight loop. */
const notTriedMs = 100;

/**
 * Whether a claimed message may be sent at all: one that was started more often than it may be tried,
 * and never came to an end, has ended every process that sent it.
 *
 * @example
 * import { killsItsProcess, type ClaimedMessage } from 'millrace/outbox';
 *
 * const poisonous = (claimed: readonly ClaimedMessage[]) => claimed.filter(killsItsProcess);
 */
export function killsItsProcess({ starts, attempts, maxAttempts }: ClaimedMessage): boolean {
  return starts - attempts > maxAttempts;
}
