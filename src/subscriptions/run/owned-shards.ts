// The shards that this process owns, each with its lease, fence token and runner.

import type { Clock } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
import type { IdSource } from '../../foundation/ids.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { Position } from '../../store/position.ts';
import { isLeaseValid } from '../rules/decide-lease.ts';
import { subscriptionLimits } from '../subscription-limits.ts';
import {
  leaseLost,
  type AddedDeadLetter,
  type Fence,
  type SubscriptionStorage,
} from '../subscription-storage.ts';
import type { Subscription } from '../subscription.ts';
import { slept } from './deadline.ts';
import { runShard, type RunnerTuning, type ShardRunner, type ShardStatus } from './shard-runner.ts';
import { createSharedFeed } from './shared-feed.ts';

interface Owned {
  readonly fence: Fence;
  readonly runner: ShardRunner;
  readonly ending: AbortController;
  requestedAtMs: number;
  releasing: Promise<void> | undefined;
}

export interface OwnedShardsOptions<Transaction> {
  readonly store: EventStore;
  readonly storage: SubscriptionStorage<Transaction>;
  readonly subscription: Subscription<Transaction>;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly observer: Observer;
  readonly worker: string;
  readonly leaseMs: number;
  readonly tuning: RunnerTuning;
  readonly restartDelayMs: number;
  readonly onDeadLetter: (added: AddedDeadLetter) => void;
  readonly onProgress: () => void;
  readonly onEnded: () => void;
}

export interface OwnedShards {
  readonly shards: readonly number[];
  acquire(shard: number): Promise<void>;
  renew(): Promise<void>;
  /** Waits for running handlers, writes the checkpoint and releases the lease. */
  release(shards: readonly number[]): Promise<void>;
  statuses(): readonly ShardStatus[];
  positions(): ReadonlyMap<number, Position | undefined>;
  poll(): void;
}

export function createOwnedShards<Transaction>(
  options: OwnedShardsOptions<Transaction>,
): OwnedShards {
  const { store, storage, subscription, clock, observer, worker, leaseMs } = options;
  const { leases } = storage;
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

  async function acquire(shard: number): Promise<void> {
    if (owned.has(shard) || (restartAtMs.get(shard) ?? 0) > clock.now()) return;
    const requestedAtMs = clock.now();
    const key = { subscription: name, shard };
    const lease = await leases.acquire(key, worker, leaseMs);
    if (lease.kind === 'held') return;
    const fence = { ...key, token: lease.token };
    const runner = runShard({ ...options, feed, fence });
    const each: Owned = {
      fence,
      runner,
      ending: new AbortController(),
      requestedAtMs,
      releasing: undefined,
    };
    owned.set(shard, each);
    observer.log?.info({ sub: name, shard, worker, token: lease.token }, 'shard acquired');
    runner.ended.then(
      () => forget(each),
      (error: unknown) => ended(each, error),
    );
    void guard(each);
  }

  /** Stops a shard by the local clock before its unrenewed lease expires for other processes. */
  async function guard(each: Owned): Promise<void> {
    for (;;) {
      const leftMs = each.requestedAtMs + leaseMs - clock.now();
      if (!(await slept(clock, leftMs, each.ending.signal))) return;
      if (isLeaseValid({ requestedAtMs: each.requestedAtMs, ttlMs: leaseMs }, clock.now()))
        continue;
      each.runner.abandon(leaseLost(each.fence));
      return;
    }
  }

  function forget(each: Owned): void {
    each.ending.abort();
    if (owned.get(each.fence.shard) === each) owned.delete(each.fence.shard);
  }

  function ended(each: Owned, err: unknown): void {
    const { shard } = each.fence;
    forget(each);
    if (hasCode(err, 'LEASE_LOST')) {
      observer.log?.warn({ sub: name, shard, worker }, 'shard lease lost');
    } else {
      observer.log?.error({ sub: name, shard, worker, err }, 'shard failed and restarts');
      restartAtMs.set(shard, clock.now() + options.restartDelayMs);
    }
    // Also of a lost shard: after a reset, a lease on another server may remain.
    void releaseLease(each.fence);
    options.onEnded();
  }

  async function releaseLease(fence: Fence): Promise<void> {
    try {
      await leases.release(fence);
    } catch (err) {
      // The lease expires anyway.
      observer.log?.debug({ sub: name, shard: fence.shard, err }, 'could not release the lease');
    }
  }

  async function renewOne(each: Owned): Promise<void> {
    const requestedAtMs = clock.now();
    const isRenewed = await leases.renew(each.fence, leaseMs);
    if (isRenewed) each.requestedAtMs = requestedAtMs;
    else each.runner.abandon(leaseLost(each.fence));
  }

  return {
    get shards() {
      return [...owned.keys()];
    },
    acquire,
    async renew() {
      await Promise.all([...owned.values()].map(renewOne));
    },
    async release(shards) {
      const released = shards.flatMap((shard) => owned.get(shard) ?? []);
      await Promise.all(
        released.map((each) => {
          each.releasing ??= each.runner.stop().then(() => releaseLease(each.fence));
          return each.releasing;
        }),
      );
    },
    statuses: () => [...owned.values()].map(({ runner }) => runner.status),
    positions: () =>
      new Map([...owned].map(([shard, { runner }]) => [shard, runner.status.position])),
    poll() {
      for (const { runner } of owned.values()) runner.poll();
    },
  };
}
