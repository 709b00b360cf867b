// Which of a payment's events leave, and for whom: jobs for the provider, news for the others.

import type { IntegrationMessage, OutboxProjectorDefinition } from 'millrace/outbox';
import { paymentCompleted, paymentFailed, paymentQueued } from './payment.ts';
import { redisKeys, type QueueAddress } from 'millrace/contracts';

/** Of those who hear how payments end: `kafka:payments`, `webhook:<name>`. */
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
        const tell = (payload: object): IntegrationMessage[] =>
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
        if (paymentCompleted.is(event)) return tell(event.payload);
        if (!paymentFailed.is(event)) return [];
        const { reason, withdrawn } = event.payload;
        // Not behind the job of `process`, which may hang: the provider bears either order.
        const cancel = {
          integrationType: providerJobs.cancel,
          eventType,
          payload: { paymentId },
        };
        return [...(withdrawn ? [cancel] : []), ...tell({ reason })];
      },
    },
  };
}

// The queue of the work `process`, by its names: one job for each payment, whatever happens to it.
/** Chooses the destination in the outbox, and the queue where there are queues. */
export const providerJobs = {
  process: 'payment-provider:process',
  cancel: 'payment-provider:cancel',
} as const;

/** `mq:{core}:paymenthub:payment:v1:process`, as BullMQ takes it. */
export function processQueue(tenant: string): QueueAddress {
  return redisKeys.queueAddress(tenant, 'paymenthub', 'payment', 1, 'process');
}

/** `job:{core}:paymenthub:payment:process:<paymentId>`: also what the provider tells repeats by. */
export function processJobId(tenant: string, paymentId: string): string {
  return redisKeys.jobId(tenant, 'paymenthub', 'payment', 'process', paymentId);
}
