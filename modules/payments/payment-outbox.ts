// Maps events of payments to outbox messages: jobs for the provider, results for the listeners.

import { redisKeys, type QueueAddress } from 'millrace/contracts';
import type { IntegrationMessage, OutboxProjectorDefinition } from 'millrace/outbox';
import { paymentCompleted, paymentFailed, paymentQueued } from './payment.ts';

/** Destinations of the results: `kafka:payments`, `webhook:<name>`. */
export interface PaymentOutboxOptions {
  readonly listeners: readonly string[];
}

export function paymentOutbox({ listeners }: PaymentOutboxOptions): OutboxProjectorDefinition {
  return {
    name: 'sub:payments:outbox:v1',
    filter: { types: [paymentQueued.type, paymentCompleted.type, paymentFailed.type] },
    mapper: {
      map(event): readonly IntegrationMessage[] {
        const { type: eventType, tenant, aggregate } = event;
        const paymentId = aggregate.id;
        const toListeners = (payload: object): IntegrationMessage[] =>
          listeners.map((integrationType) => ({
            integrationType,
            eventType,
            payload: { paymentId, ...payload },
            orderingKey: paymentId,
          }));
        if (paymentQueued.is(event)) {
          const idempotencyKey = processJobId(tenant, paymentId);
          return [
            {
              integrationType: providerJobs.process,
              eventType,
              payload: { paymentId, ...event.payload },
              headers: { idempotencyKey },
            },
          ];
        }
        if (paymentCompleted.is(event)) return toListeners(event.payload);
        if (!paymentFailed.is(event)) return [];
        const { reason, withdrawn } = event.payload;
        // No ordering key: `process` may hang, and the provider accepts both orders.
        const cancel = {
          integrationType: providerJobs.cancel,
          eventType,
          payload: { paymentId },
        };
        return [...(withdrawn ? [cancel] : []), ...toListeners({ reason })];
      },
    },
  };
}

/** Integration types: they select the destination, and the queue if queues are used. */
export const providerJobs = {
  process: 'payment-provider:process',
  cancel: 'payment-provider:cancel',
} as const;

/** `mq:{core}:paymenthub:payment:v1:process` in BullMQ. */
export function processQueue(tenant: string): QueueAddress {
  return redisKeys.queueAddress(tenant, 'paymenthub', 'payment', 1, 'process');
}

/** `job:{core}:paymenthub:payment:process:<paymentId>`, also the idempotency key for the provider. */
export function processJobId(tenant: string, paymentId: string): string {
  return redisKeys.jobId(tenant, 'paymenthub', 'payment', 'process', paymentId);
}
