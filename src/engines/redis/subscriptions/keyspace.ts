// The keys of one subscription. Its name is their hash tag, so that one script changes positions, leases, marks, dead
// letters and waiting events together on a cluster.

import { redisKeys } from '../../../contracts/redis-keys.ts';
import type { ShardKey } from '../../../subscriptions/subscription-storage.ts';
import { loadScripts } from '../connection/script.ts';

/** Every script declares all of its keys. */
export const subscriptionScripts = loadScripts(new URL('scripts/', import.meta.url), [
  'open',
  'pause',
  'load',
  'save',
  'settle',
  'drain',
  'reset',
  'mirror',
  'raise',
  'park',
  'unblock',
  'addLetter',
  'replayLetter',
  'discardLetter',
  'noteLetter',
  'claim',
  'settleClaim',
  'sweepClaims',
]);

export interface SubscriptionKeyspace {
  readonly leases: string;
  readonly state: string;
  readonly letters: string;
  readonly letterIds: string;
  readonly lettersByTime: string;
  readonly lettersPending: string;
  readonly processed: string;
  readonly processedExpiry: string;
}

export interface ShardKeyspace extends SubscriptionKeyspace {
  readonly marks: string;
  readonly blocked: string;
  readonly waiting: string;
}

export function subscriptionKeyspace(subscription: string): SubscriptionKeyspace {
  return {
    leases: redisKeys.lease(subscription, 'shards'),
    state: redisKeys.subscription(subscription, 'state'),
    letters: redisKeys.subscription(subscription, 'letters'),
    letterIds: redisKeys.subscription(subscription, 'letter-ids'),
    lettersByTime: redisKeys.subscription(subscription, 'letters-by-time'),
    lettersPending: redisKeys.subscription(subscription, 'letters-pending'),
    processed: redisKeys.subscription(subscription, 'processed'),
    processedExpiry: redisKeys.subscription(subscription, 'processed-expiry'),
  };
}

export function shardKeyspace({ subscription, shard }: ShardKey): ShardKeyspace {
  return {
    ...subscriptionKeyspace(subscription),
    marks: redisKeys.subscription(subscription, `marks:${shard}`),
    blocked: redisKeys.subscription(subscription, `blocked:${shard}`),
    waiting: redisKeys.subscription(subscription, `waiting:${shard}`),
  };
}
