import type { AnyBulkWriteOperation } from 'mongodb';
import { toPosition, toSequence } from '../../../store/position.ts';
import type { ParkedStream, WaitingEvents } from '../../../subscriptions/subscription-storage.ts';
import { shardIdOf, type SubscriptionCollections, type WaitingDocument } from './collections.ts';
import type { FencedWrites, Session } from './fenced-writes.ts';
import { inSession, markIdOf, waitingIdOf } from './settlements.ts';

export interface StreamOfShard {
  readonly subscription: string;
  readonly shardId: string;
  readonly stream: string;
}

/** A stream is blocked before its events wait: a crash in between leaves no event that no retry finds. */
export async function blockStream(
  { blocked }: SubscriptionCollections,
  { subscription, shardId, stream }: StreamOfShard,
  dueAtMs: number | null | 'keep',
  session: Session,
): Promise<void> {
  const inserted = { subscription, shardId, stream };
  await blocked.updateOne(
    { _id: `${shardId}/${stream}` },
    dueAtMs === 'keep'
      ? { $setOnInsert: { ...inserted, dueAtMs: 0 } }
      : { $set: { dueAtMs }, $setOnInsert: inserted },
    { upsert: true, ...inSession(session) },
  );
}

/** Adds an event that waits for its first attempt, or resets its attempts. */
export async function addWaiting(
  { waiting }: SubscriptionCollections,
  of: StreamOfShard,
  { position, eventId }: { readonly position: number; readonly eventId: string },
  session: Session,
): Promise<void> {
  await waiting.updateOne(
    { _id: waitingIdOf(of.shardId, of.stream, position) },
    {
      $set: { failures: 0, history: [] },
      $setOnInsert: { ...of, position, eventId },
    },
    { upsert: true, ...inSession(session) },
  );
}

export function mongodbWaiting(
  collections: SubscriptionCollections,
  writes: FencedWrites,
): WaitingEvents {
  const { marks, blocked, waiting } = collections;

  function upserts(
    of: Omit<StreamOfShard, 'stream'>,
    { stream, due, events }: ParkedStream,
    drained: ReadonlySet<string>,
  ): AnyBulkWriteOperation<WaitingDocument>[] {
    return events.flatMap(({ position: at, eventId, failures, history }) => {
      const position = toSequence(at);
      // The feed may deliver an event again that was drained above the checkpoint.
      if (due === 'queued' && drained.has(markIdOf(of.shardId, position))) return [];
      const fixed = { ...of, stream, position, eventId };
      const attempts = { failures, history };
      const update =
        due === 'queued'
          ? { $setOnInsert: { ...fixed, ...attempts } }
          : { $set: attempts, $setOnInsert: fixed };
      const filter = { _id: waitingIdOf(of.shardId, stream, position) };
      return [{ updateOne: { filter, update, upsert: true } }];
    });
  }

  return {
    park: (fence, streams) =>
      writes.run(fence, async (session) => {
        const of = { subscription: fence.subscription, shardId: shardIdOf(fence) };
        for (const { stream, due } of streams) {
          const dueAtMs = due === 'queued' ? 'keep' : due;
          await blockStream(collections, { ...of, stream }, dueAtMs, session);
        }
        const queued = streams.filter(({ due }) => due === 'queued');
        const ids = queued.flatMap(({ events }) =>
          events.map(({ position }) => markIdOf(of.shardId, toSequence(position))),
        );
        const found =
          ids.length === 0
            ? []
            : await marks.find({ _id: { $in: ids } }, inSession(session)).toArray();
        const drained = new Set(found.map(({ _id }) => _id));
        const operations = streams.flatMap((each) => upserts(of, each, drained));
        if (operations.length > 0) await waiting.bulkWrite(operations, inSession(session));
      }),
    async due(key, nowMs, limit) {
      const found = await blocked
        .find({ shardId: shardIdOf(key), dueAtMs: { $lte: nowMs } })
        .sort({ dueAtMs: 1 })
        .limit(limit)
        .toArray();
      return found.map(({ stream }) => stream);
    },
    async next(key, stream, limit, after) {
      const found = await waiting
        .find({
          shardId: shardIdOf(key),
          stream,
          position: { $gt: after === undefined ? -1 : toSequence(after) },
        })
        .sort({ position: 1 })
        .limit(limit)
        .toArray();
      return found.map(({ position, eventId, failures, history }) => ({
        position: toPosition(position),
        eventId,
        failures,
        history: Array.isArray(history) ? history : [],
      }));
    },
    unblock: (fence, stream) =>
      writes.run(fence, async (session) => {
        const of = { subscription: fence.subscription, shardId: shardIdOf(fence), stream };
        const first = () => waiting.findOne({ shardId: of.shardId, stream }, inSession(session));
        if ((await first()) !== null) return false;
        await blocked.deleteOne({ _id: `${of.shardId}/${stream}` }, inSession(session));
        // Without a transaction, a replay may have been requested in between.
        if (session !== undefined || (await first()) === null) return true;
        await blockStream(collections, of, 0, session);
        return false;
      }),
    count: (subscription) => waiting.countDocuments({ subscription }),
    countOf: (key, stream) => waiting.countDocuments({ shardId: shardIdOf(key), stream }),
  };
}
