import { parseStored } from '../../../foundation/parse-json.ts';
import type { EventFilter } from '../../../store/event-filter.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import {
  leaseLost,
  type CheckpointStore,
  type SubscriptionState,
} from '../../../subscriptions/subscription-storage.ts';
import {
  shardIdOf,
  type SubscriptionCollections,
  type SubscriptionDocument,
} from './collections.ts';
import type { FencedWrites } from './fenced-writes.ts';
import { inSession } from './settlements.ts';

export function mongodbCheckpoints(
  collections: SubscriptionCollections,
  writes: FencedWrites,
): CheckpointStore {
  const { subscriptions, shards, marks, blocked, waiting, letters } = collections;

  /** The position of the shard, or the highest checkpoint that was committed with a mark. */
  async function positionOf(shardId: string): Promise<number | undefined> {
    const shard = await shards.findOne({ _id: shardId }, { projection: { position: 1 } });
    const [above] = await marks
      .find({ shardId, checkpoint: { $gt: shard?.position ?? 0 } })
      .sort({ checkpoint: -1 })
      .limit(1)
      .toArray();
    return above?.checkpoint ?? shard?.position ?? undefined;
  }

  async function stateOf(document: SubscriptionDocument): Promise<SubscriptionState> {
    const { _id: subscription, shards: count, paused, filter } = document;
    const found = await Promise.all(
      Array.from({ length: count }, (_, shard) => positionOf(shardIdOf({ subscription, shard }))),
    );
    return {
      subscription,
      shards: count,
      paused,
      filter: filter === null ? undefined : (parseStored(filter) as EventFilter | undefined),
      positions: found.map((each) => (each === undefined ? undefined : toPosition(each))),
    };
  }

  async function get(subscription: string): Promise<SubscriptionState | undefined> {
    const found = await subscriptions.findOne({ _id: subscription });
    return found === null ? undefined : stateOf(found);
  }

  return {
    async open(subscription, count, filter) {
      await subscriptions.updateOne(
        { _id: subscription },
        {
          $set: { filter: filter === undefined ? null : JSON.stringify(filter) },
          $setOnInsert: { shards: count, paused: false },
        },
        { upsert: true },
      );
      return (await get(subscription)) as SubscriptionState;
    },
    async load(key) {
      const shardId = shardIdOf(key);
      const position = await positionOf(shardId);
      const done = await marks.find({ shardId, position: { $gt: position ?? -1 } }).toArray();
      const streams = await blocked.find({ shardId }, { projection: { stream: 1 } }).toArray();
      return {
        position: position === undefined ? undefined : toPosition(position),
        done: done.map((each) => toPosition(each.position)),
        blocked: streams.map(({ stream }) => stream),
      };
    },
    async save(fence, position) {
      const shardId = shardIdOf(fence);
      const at = toSequence(position);
      const { matchedCount } = await shards.updateOne(
        { _id: shardId, token: fence.token },
        { $max: { position: at } },
      );
      if (matchedCount === 0) throw leaseLost(fence);
      await marks.deleteMany({ shardId, position: { $lte: at }, checkpoint: { $lte: at } });
    },
    async setPaused(subscription, paused) {
      const result = await subscriptions.updateOne({ _id: subscription }, { $set: { paused } });
      return result.matchedCount > 0;
    },
    async reset(subscription, to, { by, atMs }) {
      const known = await subscriptions.findOne({ _id: subscription });
      if (known === null) return false;
      const at = toSequence(to);
      await writes.unfenced(async (session) => {
        const options = inSession(session);
        for (let shard = 0; shard < known.shards; shard += 1) {
          const shardId = shardIdOf({ subscription, shard });
          await shards.updateOne(
            { _id: shardId },
            {
              $inc: { token: 1 },
              $set: { position: at, expiresAt: new Date(0) },
              $setOnInsert: { subscription, shard, owner: '' },
            },
            { upsert: true, ...options },
          );
          const raised = await shards.findOne({ _id: shardId }, options);
          await writes.raise({ subscription, shard }, raised?.token ?? 0, session);
          await marks.deleteMany({ shardId }, options);
        }
        await waiting.deleteMany({ subscription, position: { $gt: at } }, options);
        const left = await waiting.find({ subscription }, options).toArray();
        const streams = new Set(left.map(({ shardId, stream }) => `${shardId}/${stream}`));
        await blocked.deleteMany({ subscription, _id: { $nin: [...streams] } }, options);
        await letters.updateMany(
          { handler: subscription, status: 'pending', position: { $gt: at } },
          {
            $set: {
              status: 'discarded',
              discardedAt: new Date(atMs),
              discardedBy: by,
              discardReason: 'the subscription was reset',
              replayRequestedAt: null,
            },
          },
          options,
        );
      });
      return true;
    },
    get: (subscription) => get(subscription),
    async list() {
      const found = await subscriptions.find().sort({ _id: 1 }).toArray();
      return Promise.all(found.map(stateOf));
    },
  };
}
