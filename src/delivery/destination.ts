// The port: one function that takes a message to where it belongs and says what became of it.

import type { DeliveryMessage } from './delivery-message.ts';
import type { DeliveryOutcome } from './delivery-outcome.ts';

export interface DeliveryContext {
  /** The same for every attempt; the receiver dedupes by it. */
  readonly idempotencyKey: string;
  /** The first is 1. */
  readonly attempt: number;
  /** An earlier attempt was begun: the receiver may have the message, whatever was heard of it. */
  readonly isRepeated: boolean;
  /** Fires when the time is up or the process stops: end whatever is under way. */
  readonly signal: AbortSignal;
  readonly tenantId: string | undefined;
  readonly correlationId: string | undefined;
}

/**
 * Delivers one message. To return, or to return nothing, is to have sent it; to throw is to be tried
 * again, unless it is `Terminal` (never again), `RetryAfter` or `Snooze` of `millrace/subscriptions`.
 * `destinationConformance` of `millrace/testing` checks one.
 *
 * @example
 * import { createDelivery, type Destination } from 'millrace/delivery';
 *
 * const warehouse: Destination = async (message, { idempotencyKey, signal }) => {
 *   const answer = await fetch('https://warehouse.example/orders', {
 *     method: 'POST',
 *     headers: { 'idempotency-key': idempotencyKey },
 *     body: JSON.stringify(message.payload),
 *     signal,
 *   });
 *   if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
 * };
 * const delivery = createDelivery({ destinations: { warehouse } });
 */
export type Destination = (
  message: DeliveryMessage,
  context: DeliveryContext,
) => Promise<DeliveryOutcome | void>;
