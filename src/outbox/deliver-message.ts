// One attempt to deliver: bounded in time, and whatever comes of it is a result.

import type { CallDeadlines } from '../foundation/call-deadlines.ts';
import { errorText } from '../foundation/error-text.ts';
import { outcomeOf } from '../subscriptions/handler-outcome.ts';
import type { DeliveryResult } from './decide-delivery.ts';
import { outboxLimits } from './outbox-limits.ts';
import type { ClaimedMessage } from './outbox-message.ts';

export interface DeliverContext {
  /** The same for every attempt; the receiver dedupes by it. */
  readonly idempotencyKey: string;
  /** The first is 1. */
  readonly attempt: number;
  /** Fires when the time is up, and when the process must stop. */
  readonly signal: AbortSignal;
  readonly tenantId: string | undefined;
  readonly correlationId: string | undefined;
}

/**
 * Sends one message. To return nothing is to have sent it; to throw is to be tried again, unless it is
 * `Terminal`, `RetryAfter` or `Snooze` of `millrace/subscriptions`.
 */
export type Deliver = (
  message: ClaimedMessage,
  context: DeliverContext,
) => Promise<DeliveryResult | void>;

export interface AttemptOptions {
  readonly deliver: Deliver;
  readonly timeoutMs: number;
  /** Of that length, and until the process stops; shared by all attempts. */
  readonly deadlines: CallDeadlines;
}

/**
 * Gives back what was decided upon the result, in the same step: there is one for each message, and each
 * promise more would cost as much as the rest.
 */
export function deliverMessage<T>(
  message: ClaimedMessage,
  { deliver, timeoutMs, deadlines }: AttemptOptions,
  decide: (result: DeliveryResult) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    let isOver = false;
    const end = (result: DeliveryResult): void => {
      if (isOver) return;
      isOver = true;
      try {
        resolve(decide(result));
      } catch (error) {
        reject(error);
      }
    };
    // Whoever does not heed the signal is not waited for: the lease would end before it does.
    const inTime = deadlines.begin((why) => {
      const error = why === 'late' ? `no answer within ${timeoutMs} ms` : 'stopped';
      // Cut off by the end of this process: another one will send it.
      end({ kind: 'retry', error, attempted: why === 'late' });
      over.abort(new Error(error));
    });
    if (isOver) return;
    const answered = (result: DeliveryResult): void => {
      inTime();
      end(result);
    };
    deliverOnce(message, deliver, over.signal).then(
      (result) => answered(result ?? sent),
      (error: unknown) => answered(resultOf(error)),
    );
  });
}

const sent: DeliveryResult = { kind: 'sent' };

/** What a function without types throws before it gives a promise is a rejection, too. */
function deliverOnce(
  message: ClaimedMessage,
  deliver: Deliver,
  signal: AbortSignal,
): Promise<DeliveryResult | void> {
  const { attempts, tenantId, correlationId } = message;
  const idempotencyKey = idempotencyKeyOf(message);
  const context = { idempotencyKey, attempt: attempts + 1, signal, tenantId, correlationId };
  try {
    return Promise.resolve(deliver(message, context));
  } catch (error) {
    return Promise.reject(error);
  }
}

function idempotencyKeyOf({ headers, sourceEventId }: ClaimedMessage): string {
  const key = headers?.['idempotencyKey'];
  return typeof key === 'string' && key !== '' ? key : sourceEventId;
}

function resultOf(error: unknown): DeliveryResult {
  const text = errorText(error, outboxLimits.lastErrorMax);
  const outcome = outcomeOf(error);
  if (outcome.kind === 'terminal') return { kind: 'dead', error: text };
  if (outcome.kind === 'failed') return { kind: 'retry', error: text };
  const attempted = outcome.kind === 'retry-after';
  return { kind: 'retry', error: text, afterMs: outcome.ms, attempted };
}
