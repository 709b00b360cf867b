// The queue between dispatchers and queue workers, by URL.

import type { Observer } from '../../foundation/observer.ts';
import type { DeliveryQueue } from '../../outbox/delivery-queue.ts';
import { engineOf } from './store-url.ts';

/**
 * Opens the delivery queue at a URL: `redis://…`, `rediss:`, `redis+cluster://a:6379,b:6379` (BullMQ), or
 * `memory:` within one process.
 *
 * @example
 * import { openDeliveryQueue } from 'millrace/platform';
 *
 * await using queue = await openDeliveryQueue('redis://localhost:6379');
 * for await (const { queue: name, claims } of queue.waiting()) console.log(name, claims.length);
 */
export async function openDeliveryQueue(
  url: string,
  options: { readonly observer?: Observer } = {},
): Promise<DeliveryQueue> {
  if (engineOf('queue', url, ['redis', 'memory']) === 'redis') {
    return (await import('../../engines/bullmq/index.ts')).bullmqDeliveryQueue(url, options);
  }
  return (await import('../../outbox/memory-delivery-queue.ts')).memoryDeliveryQueue();
}
