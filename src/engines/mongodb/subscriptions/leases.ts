// Leases of shards, and the fence tokens. They expire by the clock of the server.

import type { Db } from 'mongodb';
import {
  decideAcquire,
  decideRenew,
  releasedAtMs,
  type LeaseRow,
} from '../../../subscriptions/rules/decide-lease.ts';
import type {
  FenceTokens,
  LeaseStore,
  ShardKey,
} from '../../../subscriptions/subscription-storage.ts';
import { isDuplicate } from '../connection.ts';
import { shardIdOf, type ShardDocument, type SubscriptionCollections } from './collections.ts';
import type { FencedWrites } from './fenced-writes.ts';

export type ServerNow = () => Promise<number>;

export function serverClock(db: Db): ServerNow {
  return async () => {
    const { localTime } = (await db.admin().command({ hello: 1 })) as { readonly localTime: Date };
    return localTime.getTime();
  };
}

export function mongodbLeases(
  { shards, workers }: SubscriptionCollections,
  writes: FencedWrites,
  serverNow: ServerNow,
): LeaseStore {
  /** Returns false if another process was faster. */
  async function store(
    key: ShardKey,
    before: ShardDocument | null,
    row: LeaseRow,
  ): Promise<boolean> {
    const { owner, token, expiresAtMs } = row;
    const lease = { owner, token, expiresAt: new Date(expiresAtMs) };
    const _id = shardIdOf(key);
    if (before !== null) {
      const { token: tokenBefore, expiresAt } = before;
      const unchanged = { _id, token: tokenBefore, expiresAt };
      return (await shards.updateOne(unchanged, { $set: lease })).matchedCount > 0;
    }
    try {
      const { subscription, shard } = key;
      await shards.insertOne({ _id, subscription, shard, position: null, ...lease });
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  return {
    async acquire(key, owner, ttlMs, { above = 0 } = {}) {
      for (;;) {
        const nowMs = await serverNow();
        const before = await shards.findOne({ _id: shardIdOf(key) });
        const decision = decideAcquire(rowOf(before), { owner, nowMs, ttlMs, above });
        if (decision.kind === 'held') return decision;
        if (!(await store(key, before, decision.row))) continue;
        const { token } = decision.row;
        await writes.raise(key, token);
        return { kind: 'acquired', token };
      }
    },
    async renew(fence, ttlMs) {
      for (;;) {
        const nowMs = await serverNow();
        const before = await shards.findOne({ _id: shardIdOf(fence) });
        const row = decideRenew(rowOf(before), { token: fence.token, nowMs, ttlMs });
        if (row === undefined) return false;
        if (await store(fence, before, row)) return true;
      }
    },
    async release(fence) {
      await shards.updateOne(
        { _id: shardIdOf(fence), token: fence.token },
        { $set: { expiresAt: new Date(releasedAtMs) } },
      );
    },
    async list(subscription) {
      const nowMs = await serverNow();
      const found = await shards
        .find({ subscription, expiresAt: { $gt: new Date(releasedAtMs) } })
        .sort({ shard: 1 })
        .toArray();
      return found.map(({ shard, owner, expiresAt }) => ({
        shard,
        owner,
        remainingMs: Math.max(0, expiresAt.getTime() - nowMs),
      }));
    },
    async announce(subscription, worker, ttlMs) {
      const nowMs = await serverNow();
      await workers.updateOne(
        { _id: `${subscription}/${worker}` },
        {
          $set: { expiresAt: new Date(nowMs + ttlMs) },
          $setOnInsert: { subscription, worker },
        },
        { upsert: true },
      );
      await workers.deleteMany({ subscription, expiresAt: { $lte: new Date(nowMs) } });
      const found = await workers.find({ subscription }).toArray();
      return found.map((each) => each.worker).toSorted();
    },
    async leave(subscription, worker) {
      await workers.deleteOne({ _id: `${subscription}/${worker}` });
    },
    async workers(subscription) {
      const nowMs = await serverNow();
      const found = await workers
        .find({ subscription, expiresAt: { $gt: new Date(nowMs) } })
        .sort({ worker: 1 })
        .toArray();
      return found.map(({ worker, expiresAt }) => ({
        worker,
        remainingMs: expiresAt.getTime() - nowMs,
      }));
    },
  };
}

export function mongodbTokens(
  { shards }: SubscriptionCollections,
  writes: FencedWrites,
): FenceTokens {
  return {
    current: async (key) => (await shards.findOne({ _id: shardIdOf(key) }))?.token ?? 0,
    async raise(fence) {
      const { subscription, shard, token } = fence;
      try {
        const { matchedCount, upsertedCount } = await shards.updateOne(
          { _id: shardIdOf(fence), token: { $lt: token } },
          {
            $set: { token, owner: '', expiresAt: new Date(releasedAtMs) },
            $setOnInsert: { subscription, shard, position: null },
          },
          { upsert: true },
        );
        if (matchedCount + upsertedCount === 0) return false;
      } catch (error) {
        // A higher token is in force, so the upsert tried to insert a second shard.
        if (isDuplicate(error)) return false;
        throw error;
      }
      await writes.raise(fence, token);
      return true;
    },
  };
}

function rowOf(shard: ShardDocument | null): LeaseRow | undefined {
  if (shard === null) return undefined;
  const { owner, token, expiresAt } = shard;
  return { owner, token, expiresAtMs: expiresAt.getTime() };
}
