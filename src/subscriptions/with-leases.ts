// Leases in one place, everything else in another: how a token of Redis or NATS fences what is
// written to the store's database.

import type { LeaseStore, SubscriptionStorage } from './subscription-storage.ts';

/**
 * A storage whose leases are kept elsewhere. The lease says who is to own a shard; the storage still
 * decides alone which token may write: a new owner puts its token in force there before it reads or
 * writes anything, which only a higher one can. So a late owner changes nothing, and neither does one
 * of two that a lease server which lost its memory let in.
 *
 * @example
 * import { memorySubscriptionStorage, withLeases } from 'millrace/subscriptions';
 *
 * const storage = withLeases(memorySubscriptionStorage(), memorySubscriptionStorage().leases);
 * console.log(storage.capabilities.durable); // false
 */
export function withLeases<Transaction>(
  storage: SubscriptionStorage<Transaction>,
  leases: LeaseStore,
): SubscriptionStorage<Transaction> {
  const { tokens } = storage;
  return {
    ...storage,
    leases: {
      async acquire(key, owner, ttlMs, { above = 0 } = {}) {
        // The lease server may have forgotten its tokens, or a reset may have used one up.
        const highest = Math.max(above, await tokens.current(key));
        const lease = await leases.acquire(key, owner, ttlMs, { above: highest });
        if (lease.kind === 'held') return lease;
        const fence = { ...key, token: lease.token };
        let isInForce = false;
        try {
          isInForce = await tokens.raise(fence);
        } finally {
          // Somebody was faster, with as high a token, or the storage is away: nobody should wait
          // for a lease that is good for nothing.
          if (!isInForce) await leases.release(fence);
        }
        return isInForce ? lease : { kind: 'held', retryInMs: 1 };
      },
      async renew(fence, ttlMs) {
        const [isHeld, token] = await Promise.all([
          leases.renew(fence, ttlMs),
          tokens.current(fence),
        ]);
        if (isHeld && token === fence.token) return true;
        // A reset takes the token away; an owner with nothing to write would not notice.
        if (isHeld) await leases.release(fence);
        return false;
      },
      release: (fence) => leases.release(fence),
      list: (subscription) => leases.list(subscription),
      announce: (subscription, worker, ttlMs) => leases.announce(subscription, worker, ttlMs),
      leave: (subscription, worker) => leases.leave(subscription, worker),
    },
  };
}
