// The port of a destination: one function that sends a message and returns its outcome.

import type { DeliveryMessage } from './delivery-message.ts';
import type { DeliveryOutcome } from './delivery-outcome.ts';

export interface DeliveryContext {
  /** Identical for every attempt; the receiver detects duplicates by this key. */
  readonly idempotencyKey: string;
  /** The number of this attempt, starting at 1. */
  readonly attempt: number;
  /** An earlier attempt was started: the receiver may already have the message. */
  readonly isDuplicate: boolean;
  /** Fires when the time limit expires (reason: `HANDLER_TIMEOUT`) or the process stops: end the call then. */
  readonly signal: AbortSignal;
  readonly tenantId: string | undefined;
  readonly correlationId: string | undefined;
}

/**
 * Delivers one message. Returning means that it was sent. A thrown error is retried, unless it is `Terminal`
 * (dead letter), `RetryAfter` or `Snooze` of `millrace/subscriptions`. `timeoutMs` sets the time limit of the call.
 * The outbox enforces this limit for its messages; `createDelivery` does so when it is called without an outbox.
 * `destinationConformance` of `millrace/testing` checks a destination.
 *
 * @example
 * import { createDelivery, type Destination } from 'millrace/delivery';
 *
 * const warehouse: Destination = async (message, { idempotencyKey, signal }) => {
 *   const response = await fetch('https://warehouse.example/orders', {
 *     method: 'POST',
 *     headers: { 'idempotency-key': idempotencyKey },
 *     body: JSON.stringify(message.payload),
 *     signal,
 *   });
 *   if (!response.ok) throw new Error(`HTTP ${response.status}`);
 * };
 * const delivery = createDelivery({ destinations: { warehouse } });
 */
export interface Destination {
  (message: DeliveryMessage, context: DeliveryContext): Promise<DeliveryOutcome | void>;
  /** Time limit of one call. Default: `deliveryLimits.timeoutMs`. */
  readonly timeoutMs?: number | undefined;
}
