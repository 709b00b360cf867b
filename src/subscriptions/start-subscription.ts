// The one call that most programs need.

import type { EventStore } from '../store/event-store.ts';
import type { Subscription } from './subscription.ts';
import {
  createSubscriptionRunner,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from './subscription-runner.ts';
import type { SubscriptionHost } from './subscription-storage.ts';

/**
 * Runs a subscription in this process: from its checkpoint, then live, until it is stopped.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { startSubscription, subscription } from 'millrace/subscriptions';
 *
 * await using store = memoryEventStore();
 * const log = subscription({ name: 'sub:demo:log:v1', handler: ({ type }) => console.log(type) });
 * await using runner = await startSubscription(store, log);
 * await runner.whenCaughtUp();
 */
export async function startSubscription<Transaction>(
  store: EventStore & Partial<SubscriptionHost<Transaction>>,
  subscription: Subscription<Transaction>,
  options: SubscriptionOptions<Transaction> = {},
): Promise<SubscriptionRunner> {
  const runner = createSubscriptionRunner(store, subscription, options);
  await runner.start();
  return runner;
}
