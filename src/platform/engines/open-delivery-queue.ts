// The queue between dispatchers and queue workers, by URL.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { DeliveryQueue } from '../../outbox/delivery-queue.ts';

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
  if (/^rediss?(\+cluster)?:/i.test(url)) {
    const { bullmqDeliveryQueue } = await import('../../engines/bullmq/index.ts');
    return bullmqDeliveryQueue(url, options);
  }
  if (/^memory:/i.test(url)) {
    const { memoryDeliveryQueue } = await import('../../outbox/memory-delivery-queue.ts');
    return memoryDeliveryQueue();
  }
  throw new MillraceError(
    'CONFIG_INVALID',
    'unsupported queue URL; supported: redis://…, rediss:, redis+cluster://…, memory: (without a queue, the dispatcher sends itself)',
    { details: { field: 'queue' } },
  );
}
