// Leases on another server: a fence token from Redis or NATS protects the writes to the store's
// database.

import { MillraceError } from '../foundation/error.ts';
import { guardCheckpoints } from './guard-checkpoints.ts';
import type { LeaseStore, SubscriptionRoles, SubscriptionStorage } from './subscription-storage.ts';

/** The storage of a subscription, with the leases that its processes share, and protected against the loss of checkpoints. */
export function storageOf<Transaction>(
  roles: SubscriptionRoles<Transaction>,
): SubscriptionStorage<Transaction> {
  const { leases, subscriptions }: Partial<typeof roles> = roles;
  if (subscriptions !== undefined) {
    const storage = guardCheckpoints(subscriptions, roles.store);
    return leases === undefined ? storage : withLeases(storage, leases);
  }
  throw new MillraceError(
    'NOT_SUPPORTED',
    'this engine cannot store checkpoints: pass `subscriptions` of another engine, such as PostgreSQL or SQLite',
    { details: { role: 'subscriptions' } },
  );
}

/**
 * A storage that takes its leases from another server. The lease decides which process owns a shard; the
 * storage alone decides which token may write. A new owner first raises the token in the storage, which
 * requires a higher token. An outdated owner therefore writes nothing, even if the lease server lost its
 * data and granted one shard to two owners.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { withLeases } from 'millrace/subscriptions';
 *
 * const storage = withLeases(openMemory().subscriptions, openMemory().subscriptions.leases);
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
        // The lease server may have lost its tokens, and a reset raises the token in the storage.
        const highest = Math.max(above, await tokens.current(key));
        const lease = await leases.acquire(key, owner, ttlMs, { above: highest });
        if (lease.kind === 'held') return lease;
        const fence = { ...key, token: lease.token };
        let isInForce = false;
        try {
          isInForce = await tokens.raise(fence);
        } finally {
          // Another process raised the token first, or the storage is unavailable: free the useless lease.
          if (!isInForce) await leases.release(fence);
        }
        return isInForce ? lease : { kind: 'held', retryInMs: 1 };
      },
      async renew(fence, ttlMs) {
        const [isRenewed, token] = await Promise.all([
          leases.renew(fence, ttlMs),
          tokens.current(fence),
        ]);
        if (isRenewed && token === fence.token) return true;
        // A reset raises the token; an owner without writes would not notice that it lost the shard.
        if (isRenewed) await leases.release(fence);
        return false;
      },
      release: (fence) => leases.release(fence),
      list: (subscription) => leases.list(subscription),
      announce: (subscription, worker, ttlMs) => leases.announce(subscription, worker, ttlMs),
      leave: (subscription, worker) => leases.leave(subscription, worker),
      workers: (subscription) => leases.workers(subscription),
    },
  };
}
