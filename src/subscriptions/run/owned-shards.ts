// The shards that this process owns, each with its lease, fence token and runner.

import { hasCode } from '../../foundation/error.ts';
import { holdLease, type HeldLease } from '../../loops/hold-lease.ts';
import type { Position } from '../../store/position.ts';
import { subscriptionLimits } from '../subscription-limits.ts';
import { leaseLost, type ShardKey } from '../subscription-storage.ts';
import { createShardFailures, type FailingShard } from './failing-shards.ts';
import {
  runShard,
  type ShardRunner,
  type ShardRunnerOptions,
  type ShardStatus,
} from './shard-runner.ts';
import { createSharedFeed } from './shared-feed.ts';

interface Owned {
  readonly lease: HeldLease<ShardKey>;
  readonly runner: ShardRunner;
  releasing: Promise<void> | undefined;
}

export interface OwnedShardsOptions<Transaction> extends Omit<
  ShardRunnerOptions<Transaction>,
  'feed' | 'fence'
> {
  readonly worker: string;
  readonly leaseMs: number;
  readonly restartDelayMs: number;
  readonly onEnded: () => void;
}

export interface OwnedShards {
  readonly shards: readonly number[];
  acquire(shard: number): Promise<void>;
  /** Renews now, to learn of lost shards. */
  renew(): Promise<void>;
  /** Waits for running handlers, writes the checkpoint and releases the lease. */
  release(shards: readonly number[]): Promise<void>;
  statuses(): readonly ShardStatus[];
  failing(): readonly FailingShard[];
  positions(): ReadonlyMap<number, Position | undefined>;
  poll(): void;
}

export function createOwnedShards<Transaction>(
  options: OwnedShardsOptions<Transaction>,
): OwnedShards {
  const { store, storage, subscription, clock, observer, worker, leaseMs } = options;
  const { name } = subscription;
  const feed = createSharedFeed({
    store,
    filter: subscription.filter,
    shards: subscription.shards,
    pageSize: options.tuning.pageSize,
    pagesMax: subscriptionLimits.sharedPagesMax,
  });
  const owned = new Map<number, Owned>();
  const restartAtMs = new Map<number, number>();
  const failures = createShardFailures();

  async function acquire(shard: number): Promise<void> {
    if (owned.has(shard) || (restartAtMs.get(shard) ?? 0) > clock.now()) return;
    const lease = await holdLease<ShardKey>(storage.leases, {
      key: { subscription: name, shard },
      owner: worker,
      ttlMs: leaseMs,
      clock,
      observer,
      onLost: (fence) => owned.get(shard)?.runner.abandon(leaseLost(fence)),
    });
    if (lease.kind === 'held') return;
    const { fence } = lease;
    const runner = runShard({ ...options, feed, fence });
    const each: Owned = { lease, runner, releasing: undefined };
    owned.set(shard, each);
    observer.log?.info({ sub: name, shard, worker, token: fence.token }, 'shard acquired');
    runner.ended.then(
      () => forget(each),
      (error: unknown) => ended(each, error),
    );
  }

  function forget(each: Owned): void {
    const { shard } = each.lease.fence;
    if (owned.get(shard) === each) owned.delete(shard);
  }

  function ended(each: Owned, err: unknown): void {
    const { shard } = each.lease.fence;
    forget(each);
    if (hasCode(err, 'LEASE_LOST')) {
      observer.log?.warn({ sub: name, shard, worker }, 'shard lease lost');
    } else {
      restartAtMs.set(shard, clock.now() + options.restartDelayMs);
      const ends = failures.ended(shard, each.runner.status.position, err);
      // A lost checkpoint is logged once: every restart finds it lost until an operator resets the subscription.
      const level = hasCode(err, 'CHECKPOINT_LOST') && ends > 1 ? 'debug' : 'error';
      observer.log?.[level]({ sub: name, shard, worker, err }, 'shard failed and restarts');
    }
    // Also of a lost shard: after a reset, a lease on another server may remain.
    void each.lease.release();
    options.onEnded();
  }

  return {
    get shards() {
      return [...owned.keys()];
    },
    acquire,
    async renew() {
      await Promise.all([...owned.values()].map(({ lease }) => lease.renew()));
    },
    async release(shards) {
      const released = shards.flatMap((shard) => owned.get(shard) ?? []);
      await Promise.all(
        released.map((each) => {
          each.releasing ??= each.runner.stop().then(() => each.lease.release());
          return each.releasing;
        }),
      );
    },
    statuses: () => [...owned.values()].map(({ runner }) => runner.status),
    failing: () =>
      failures.list(name, new Map([...owned].map(([shard, { runner }]) => [shard, runner.status]))),
    positions: () =>
      new Map([...owned].map(([shard, { runner }]) => [shard, runner.status.position])),
    poll() {
      for (const { runner } of owned.values()) runner.poll();
    },
  };
}
