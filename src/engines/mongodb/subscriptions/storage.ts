// Subscription storage in the database of the event store. A handler of a replica set gets a session: what it writes with
// the session commits together with the mark that the event is processed, and with the checkpoint.

import type { ClientSession, Db } from 'mongodb';
import type {
  EffectTransaction,
  ProcessedEvents,
  SubscriptionStorage,
} from '../../../subscriptions/subscription-storage.ts';
import { isDuplicate, translated } from '../connection.ts';
import { mongodbCheckpoints } from './checkpoints.ts';
import { subscriptionCollections, type SubscriptionCollections } from './collections.ts';
import { mongodbDeadLetters } from './dead-letters.ts';
import { fencedWrites } from './fenced-writes.ts';
import { mongodbLeases, mongodbTokens, serverClock, type ServerNow } from './leases.ts';
import { settlementsOf } from './settlements.ts';
import { mongodbWaiting } from './waiting.ts';

export function mongodbSubscriptionStorage(
  db: Db,
  { hasTransactions }: { readonly hasTransactions: boolean },
): SubscriptionStorage<ClientSession> {
  const collections = subscriptionCollections(db);
  const writes = fencedWrites(db, collections, { hasTransactions });
  const settlements = settlementsOf(collections);
  const serverNow = serverClock(db);
  return {
    capabilities: { transactions: hasTransactions, durable: true, crossProcess: true },
    checkpoints: translated(mongodbCheckpoints(collections, writes)),
    processed: translated(mongodbProcessed(collections, serverNow)),
    deadLetters: translated(mongodbDeadLetters(collections, writes, settlements)),
    waiting: translated(mongodbWaiting(collections, writes)),
    leases: translated(mongodbLeases(collections, writes, serverNow)),
    tokens: translated(mongodbTokens(collections, writes)),
    ...translated<Pick<SubscriptionStorage<ClientSession>, 'settle' | 'begin'>>({
      async settle(fence, settlement) {
        const settle = () =>
          writes.run(fence, (session) => settlements.settle(fence, settlement, session));
        return (await settle()) ? 'settled' : 'duplicate';
      },
      async begin(fence) {
        const open = await writes.begin(fence);
        const { session } = open;
        return translated<EffectTransaction<ClientSession>>({
          transaction: session,
          async commit(settlement) {
            const settle = () => settlements.settle(fence, settlement, session);
            return (await open.commit(settle)) ? 'settled' : 'duplicate';
          },
          rollback: () => open.abort(),
        });
      },
    }),
  };
}

function mongodbProcessed(
  { processed }: SubscriptionCollections,
  serverNow: ServerNow,
): ProcessedEvents {
  return {
    async claim({ eventId, handler }, { leaseMs, ttlMs }) {
      for (;;) {
        const nowMs = await serverNow();
        const now = new Date(nowMs);
        const key = { eventId, handlerName: handler };
        const claim = {
          processedAt: null,
          leasedUntil: new Date(nowMs + leaseMs),
          expiresAt: new Date(nowMs + ttlMs),
        };
        try {
          await processed.insertOne({ ...key, ...claim, token: 1 });
          return { kind: 'claimed', token: 1 };
        } catch (error) {
          if (!isDuplicate(error)) throw error;
        }
        // An expired claim is free, whether it was confirmed or not.
        const isFree = [
          { processedAt: null, leasedUntil: { $lte: now } },
          { expiresAt: { $lte: now } },
        ];
        const taken = await processed.findOneAndUpdate(
          { ...key, $or: isFree },
          { $set: claim, $inc: { token: 1 } },
          { returnDocument: 'after' },
        );
        if (taken !== null) return { kind: 'claimed', token: taken.token };
        const current = await processed.findOne(key);
        // The entry has expired since, and was removed.
        if (current === null) continue;
        if (current.processedAt !== null) return { kind: 'done' };
        const retryInMs = Math.max(1, current.leasedUntil.getTime() - nowMs);
        return { kind: 'busy', retryInMs };
      }
    },
    async confirm({ eventId, handler }, token) {
      const processedAt = new Date(await serverNow());
      const key = { eventId, handlerName: handler, token };
      return (await processed.updateOne(key, { $set: { processedAt } })).matchedCount > 0;
    },
    async release({ eventId, handler }, token) {
      const key = { eventId, handlerName: handler, token, processedAt: null };
      const freed = { $set: { leasedUntil: new Date(0) } };
      return (await processed.updateOne(key, freed)).matchedCount > 0;
    },
    async sweep(limit) {
      const now = new Date(await serverNow());
      const expired = { expiresAt: { $lte: now } };
      const found = await processed.find(expired).sort({ expiresAt: 1 }).limit(limit).toArray();
      const ids = found.map(({ _id }) => _id);
      return (await processed.deleteMany({ _id: { $in: ids }, ...expired })).deletedCount;
    },
  };
}
