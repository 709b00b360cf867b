// The queue of the work `process`, by its names: one job for each payment, whatever happens to it.

import { redisKeys, type QueueAddress } from 'millrace/contracts';

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
