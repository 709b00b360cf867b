// Pure decisions about the outcome of a delivery attempt, which the dispatcher carries out.

import { backoffMs, outboxBackoff, type BackoffPolicy } from '../foundation/backoff.ts';
import { failureCause, type ErrorFacts } from '../foundation/failure-cause.ts';
import { cleanText } from '../foundation/error-text.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import { lastErrorText } from './check-outbox.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage, DeliveryAttempt } from './outbox-message.ts';

/** What was sent and answered, for the stored attempt. */
interface Exchange {
  readonly answer?: { readonly status: number; readonly body: string } | undefined;
  readonly request?: { readonly headers: Readonly<Record<string, string>> } | undefined;
}

/** The part of a delivery's result that the ledger needs. */
export type DeliveryResult = Exchange &
  (
    | { readonly kind: 'sent' }
    | {
        readonly kind: 'retry';
        readonly error: string;
        /** Requested by the receiver (Retry-After). */
        readonly afterMs?: number | undefined;
        /** False: nothing was sent (rate limit, open breaker), so it does not count as an attempt. */
        readonly attempted?: boolean | undefined;
        /** Name, code and stack of a thrown error. */
        readonly facts?: ErrorFacts | undefined;
      }
    | {
        readonly kind: 'dead';
        readonly error: string;
        readonly facts?: ErrorFacts | undefined;
      }
  );

/** When to retry. The number of attempts is `maxAttempts` of the message. */
export type RetrySchedule = Omit<BackoffPolicy, 'attemptsMax'> & {
  /** The longest delay that a receiver can request. Default: 24 h. */
  readonly retryAfterMsMax?: number | undefined;
};

/**
 * The outcome to store after an attempt. A retry is due after the longer one of backoff and the receiver's
 * requested delay; a failure of the last attempt is a dead letter.
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
    readonly random?: number | undefined;
  },
): OutboxOutcome {
  const claim = { id: message.id, token: message.token };
  // Returning means sent, also where a short function returns some other value.
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

/**
 * The outcome with its attempt, which the ledger stores. A message that is sent at its first attempt has none: that
 * would be one more write per message.
 */
export function withAttempt(
  outcome: OutboxOutcome,
  message: ClaimedMessage,
  attempted: {
    readonly result: DeliveryResult;
    readonly startMs: number;
    readonly nowMs: number;
  },
): OutboxOutcome {
  const { result, startMs, nowMs } = attempted;
  if (outcome.kind === 'released') return outcome;
  if (outcome.kind === 'sent' && message.attempts === 0) return outcome;
  const { answer, request } = result;
  const common = {
    at: new Date(startMs).toISOString(),
    durationMs: nowMs - startMs,
    ...(answer && { status: answer.status, answer: startOf(answer.body) }),
    ...(request && { headers: request.headers }),
  };
  if (outcome.kind === 'sent') return { ...outcome, attempt: { ...common, outcome: 'sent' } };
  const { kind, error } = outcome;
  const where = { source: 'delivery', where: message.integrationType, error };
  const cause = failureCause(where, result.kind === 'sent' ? {} : result.facts);
  const attempt: DeliveryAttempt = { ...common, outcome: kind, error, cause };
  return { ...outcome, attempt };
}

/** A short `deliver` function may return any value, also one that only looks like an answer. */
function startOf(body: unknown): string {
  return typeof body === 'string' ? cleanText(body, limits.answerBytesMax) : '';
}

/** The shortest delay after a message was not attempted, to avoid a tight loop. */
const notTriedMs = 100;

/**
 * Whether sending the message probably kills the process: it was started more often than it may be
 * attempted, without an outcome.
 *
 * @example
 * import { isPoisonous, type ClaimedMessage } from 'millrace/outbox';
 *
 * const poisonous = (claimed: readonly ClaimedMessage[]) => claimed.filter(isPoisonous);
 */
export function isPoisonous({ starts, attempts, maxAttempts }: ClaimedMessage): boolean {
  return starts - attempts > maxAttempts;
}
