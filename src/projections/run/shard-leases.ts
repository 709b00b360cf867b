// Leases on all shards of a projection, so that a rebuild or removal runs without other processes.

import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import {
  leaseLost,
  type Fence,
  type LeaseStore,
} from '../../subscriptions/subscription-storage.ts';

export interface ShardLeases extends AsyncDisposable {
  readonly fences: readonly Fence[];
  /** Renews the leases when a third of their time has passed. Throws `LEASE_LOST`. */
  renewIfDue(): Promise<void>;
}

export interface ShardLeaseOptions {
  readonly subscription: string;
  readonly shards: number;
  readonly owner: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Waits until the leases of a dead process expire, then fails with `PROJECTION_BUSY`. */
export async function acquireAllShards(
  leases: LeaseStore,
  options: ShardLeaseOptions,
): Promise<ShardLeases> {
  const { subscription, shards, owner, leaseMs, clock, signal } = options;
  const fences: Fence[] = [];
  const deadlineMs = clock.now() + 3 * leaseMs;
  let renewAtMs = 0;

  const release = async (): Promise<void> => {
    for (const fence of fences.splice(0)) await leases.release(fence);
  };

  const renewIfDue = async (): Promise<void> => {
    if (clock.now() < renewAtMs) return;
    for (const fence of fences) {
      if (!(await leases.renew(fence, leaseMs))) throw leaseLost(fence);
    }
    renewAtMs = clock.now() + leaseMs / 3;
  };

  try {
    for (let shard = 0; shard < shards;) {
      const lease = await leases.acquire({ subscription, shard }, owner, leaseMs);
      if (lease.kind === 'acquired') {
        fences.push({ subscription, shard, token: lease.token });
        shard += 1;
        continue;
      }
      if (clock.now() >= deadlineMs) throw busy(subscription);
      await clock.sleep(Math.min(lease.retryInMs, leaseMs / 10), signal);
      await renewIfDue();
    }
    renewAtMs = clock.now() + leaseMs / 3;
  } catch (error) {
    await release();
    throw error;
  }
  return { fences, renewIfDue, [Symbol.asyncDispose]: release };
}

function busy(name: string): MillraceError {
  return new MillraceError('PROJECTION_BUSY', `another process runs ${name}`, {
    details: { name },
  });
}
