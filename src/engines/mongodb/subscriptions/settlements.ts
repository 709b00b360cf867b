// Marks of processed events, and the settlement of events.

import { toSequence } from '../../../store/position.ts';
import type { Fence, Settlement, ShardKey } from '../../../subscriptions/subscription-storage.ts';
import { isDuplicate } from '../connection.ts';
import { shardIdOf, type SubscriptionCollections } from './collections.ts';
import type { Session } from './fenced-writes.ts';

export interface Settlements {
  /** Returns false if the event was settled before. */
  settle(fence: Fence, settlement: Settlement, session: Session): Promise<boolean>;
  mark(key: ShardKey, position: number, session: Session): Promise<void>;
}

export function markIdOf(shardId: string, position: number): string {
  return `${shardId}/${position}`;
}

export function waitingIdOf(shardId: string, stream: string, position: number): string {
  return `${shardId}/${stream}/${position}`;
}

/** The options of an operation, inside a transaction or without one. */
export function inSession(session: Session): { readonly session?: NonNullable<Session> } {
  return session === undefined ? {} : { session };
}

export function settlementsOf({ marks, waiting, letters }: SubscriptionCollections): Settlements {
  async function mark(key: ShardKey, position: number, session: Session): Promise<void> {
    const shardId = shardIdOf(key);
    await marks.updateOne(
      { _id: markIdOf(shardId, position) },
      { $setOnInsert: { shardId, position, checkpoint: 0 } },
      { upsert: true, ...inSession(session) },
    );
  }

  async function settleDelivered(
    fence: Fence,
    { positions, checkpoint }: Extract<Settlement, { kind: 'delivered' }>,
    session: Session,
  ): Promise<boolean> {
    const shardId = shardIdOf(fence);
    const sequences = positions.map(toSequence).toSorted((a, b) => a - b);
    const documents = sequences.map((position, index) => ({
      _id: markIdOf(shardId, position),
      shardId,
      position,
      // On the highest mark, which is removed last.
      checkpoint:
        checkpoint !== undefined && index === sequences.length - 1 ? toSequence(checkpoint) : 0,
    }));
    const ids = documents.map(({ _id }) => _id);
    if ((await marks.findOne({ _id: { $in: ids } }, inSession(session))) !== null) return false;
    try {
      await marks.insertMany(documents, inSession(session));
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  return {
    mark,
    async settle(fence, settlement, session) {
      if (settlement.kind === 'delivered') return settleDelivered(fence, settlement, session);
      const { stream, eventId, atMs } = settlement;
      const position = toSequence(settlement.position);
      const _id = waitingIdOf(shardIdOf(fence), stream, position);
      if ((await waiting.findOne({ _id }, inSession(session))) === null) return false;
      await letters.updateMany(
        { eventId, handler: fence.subscription, status: 'pending' },
        { $set: { status: 'replayed', replayedAt: new Date(atMs), replayRequestedAt: null } },
        inSession(session),
      );
      await mark(fence, position, session);
      await waiting.deleteOne({ _id }, inSession(session));
      return true;
    },
  };
}
