// All shards of a projection for one process: who holds them may build or remove without anybody else at it.

import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import {
  leaseLost,
  type Fence,
  type LeaseStore,
} from '../../subscriptions/subscription-storage.ts';

export interface ShardLeases extends AsyncDisposable {
  readonly fences: readonly Fence[];
  /** Now and then: cheap until it is time. Throws `LEASE_LOST`. */
  keep(): Promise<void>;
}

export interface ShardLeaseOptions {
  readonly subscription: string;
  readonly shards: number;
  readonly owner: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Waits as long as a process that died keeps them; then: `PROJECTION_BUSY`. */
export async function takeAllShards(
  leases: LeaseStore,
  options: ShardLeaseOptions,
): Promise<ShardLeases> {
  const { subscription, shards, owner, leaseMs, clock, signal } = options;
  const fences: Fence[] = [];
  const untilMs = clock.now() + 3 * leaseMs;
  let renewAtMs = 0;

  const release = async (): Promise<void> => {
    for (const fence of fences.splice(0)) await leases.release(fence);
  };

  const keep = async (): Promise<void> => {
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
      if (clock.now() >= untilMs) throw busy(subscription);
      await clock.sleep(Math.min(lease.retryInMs, leaseMs / 10), signal);
      await keep();
    }
    renewAtMs = clock.now() + leaseMs / 3;
  } catch (error) {
    await release();
    throw error;
  }
  return { fences, keep, [Symbol.asyncDispose]: release };
}

function busy(name: string): MillraceError {
  return new MillraceError('PROJECTION_BUSY', `another process is at work on ${name}`, {
    details: { name },
  });
}
