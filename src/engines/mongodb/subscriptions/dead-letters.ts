import type { Filter } from 'mongodb';
import { jsonText, parseStored } from '../../../foundation/parse-json.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import {
  addedLetter,
  type Attempt,
  type DeadLetter,
  type DeadLetterFilter,
} from '../../../subscriptions/dead-letter.ts';
import type {
  DeadLetterListPage,
  DeadLetterStore,
} from '../../../subscriptions/subscription-storage.ts';
import { documentLimits, fitsBson } from '../event-document.ts';
import { shardIdOf, type DeadLetterDocument, type SubscriptionCollections } from './collections.ts';
import type { FencedWrites, Session } from './fenced-writes.ts';
import { inSession, waitingIdOf, type Settlements } from './settlements.ts';
import { addWaiting, blockStream, type StreamOfShard } from './waiting.ts';

export function mongodbDeadLetters(
  collections: SubscriptionCollections,
  writes: FencedWrites,
  settlements: Settlements,
): DeadLetterStore {
  const { letters, waiting, blocked } = collections;

  async function get(id: string): Promise<DeadLetter | undefined> {
    const found = await letters.findOne({ _id: id });
    return found === null ? undefined : toLetter(found);
  }

  async function list(
    filter: DeadLetterFilter,
    { limit = 100, after, withoutPayloads = false }: DeadLetterListPage = {},
  ): Promise<readonly DeadLetter[]> {
    const last = after === undefined ? null : await letters.findOne({ _id: after });
    const later: Filter<DeadLetterDocument>[] =
      last === null
        ? []
        : [
            {
              $or: [
                { createdAt: { $gt: last.createdAt } },
                { createdAt: last.createdAt, _id: { $gt: last._id } },
              ],
            },
          ];
    const found = await letters
      .find(
        { $and: [condition(filter), ...later] },
        withoutPayloads ? { projection: { payload: 0, payloadJson: 0 } } : {},
      )
      .sort({ createdAt: 1, _id: 1 })
      .limit(limit)
      .toArray();
    return found.map((each) => toLetter(withoutPayloads ? { ...each, payload: null } : each));
  }

  /** One transaction for each dead letter, so that their number does not matter. */
  async function eachPending(
    filter: DeadLetterFilter,
    change: (letter: DeadLetter, session: Session) => Promise<boolean>,
  ): Promise<number> {
    let count = 0;
    let after: string | undefined;
    for (;;) {
      const page = await list({ ...filter, status: 'pending' }, { after, withoutPayloads: true });
      for (const letter of page) {
        if (await writes.unfenced((session) => change(letter, session))) count += 1;
      }
      after = page.at(-1)?.id;
      if (after === undefined) return count;
    }
  }

  async function removeWaiting(of: StreamOfShard, position: number, session: Session) {
    const _id = waitingIdOf(of.shardId, of.stream, position);
    await waiting.deleteOne({ _id }, inSession(session));
  }

  /** The dead letter changes last: after a crash, it is still pending, and the request can be repeated. */
  async function changePending(
    { id }: DeadLetter,
    changes: Partial<DeadLetterDocument>,
    session: Session,
  ): Promise<boolean> {
    const pending = { _id: id, status: 'pending' } as const;
    const result = await letters.updateOne(pending, { $set: changes }, inSession(session));
    return result.matchedCount > 0;
  }

  return {
    add: (fence, letter) =>
      writes.run(fence, async (session) => {
        const { eventId, handler, stream } = letter;
        const before = await letters.findOne({ eventId, handler }, inSession(session));
        const added = toDocument(
          addedLetter(letter, before === null ? undefined : toLetter(before)),
        );
        // A damaged payload stays as it is.
        const document = before === null ? added : { ...before, ...added, payload: before.payload };
        const { _id } = document;
        await letters.replaceOne({ _id }, document, { upsert: true, ...inSession(session) });
        const position = toSequence(letter.position);
        const of = { subscription: fence.subscription, shardId: shardIdOf(fence), stream };
        if (letter.parked) {
          await blockStream(collections, of, null, session);
          await addWaiting(collections, of, { position, eventId }, session);
        }
        await settlements.mark(fence, position, session);
        if (!letter.parked) await removeWaiting(of, position, session);
        const isNew = before === null || before.replayRequestedAt === null;
        return { letter: toLetter(document), isNew };
      }),
    get: (id) => get(id),
    list: (filter, page) => list(filter, page),
    count: (filter) => letters.countDocuments(condition(filter)),
    replay: (filter, { by, atMs }) =>
      eachPending(filter, async (letter, session) => {
        const of = streamOf(letter);
        const position = toSequence(letter.position);
        await addWaiting(collections, of, { position, eventId: letter.eventId }, session);
        await blockStream(collections, of, 0, session);
        const changes = { replayedBy: by, replayRequestedAt: new Date(atMs) };
        return changePending(letter, changes, session);
      }),
    discard: (filter, { by, reason, atMs }) =>
      eachPending(filter, async (letter, session) => {
        const of = streamOf(letter);
        await removeWaiting(of, toSequence(letter.position), session);
        await blocked.updateOne(
          { _id: `${of.shardId}/${of.stream}` },
          { $set: { dueAtMs: 0 } },
          inSession(session),
        );
        const changes = {
          status: 'discarded',
          discardedAt: new Date(atMs),
          discardedBy: by,
          discardReason: reason,
          replayRequestedAt: null,
        } as const;
        return changePending(letter, changes, session);
      }),
    async note(id, notes) {
      const result = await letters.updateOne({ _id: id }, { $set: { notes } });
      return result.matchedCount > 0;
    },
  };
}

function streamOf({ handler, shard, stream }: DeadLetter): StreamOfShard {
  return { subscription: handler, shardId: shardIdOf({ subscription: handler, shard }), stream };
}

function condition(filter: DeadLetterFilter): Filter<DeadLetterDocument> {
  const { ids, eventIds, since, replayRequested, ...equal } = filter;
  const given = Object.entries(equal).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(given),
    ...(ids === undefined ? {} : { _id: { $in: [...ids] } }),
    ...(eventIds === undefined ? {} : { eventId: { $in: [...eventIds] } }),
    ...(since === undefined ? {} : { createdAt: { $gte: new Date(since) } }),
    ...(replayRequested === undefined
      ? {}
      : { replayRequestedAt: replayRequested ? { $ne: null } : null }),
  };
}

/** The fields of the architecture document come first. */
function toDocument(letter: DeadLetter): DeadLetterDocument {
  const { id: _id, eventId, eventType, aggregateId, payload, error, ...others } = letter;
  const { attempts, createdAt, status, replayedAt, replayedBy, notes, ...rest } = others;
  const date = (at: string | null): Date | null => (at === null ? null : new Date(at));
  return {
    _id,
    eventId,
    eventType,
    aggregateId,
    ...payloadFields(payload),
    error,
    attempts,
    createdAt: new Date(createdAt),
    status,
    replayedAt: date(replayedAt),
    replayedBy,
    notes,
    ...rest,
    cause: definedParts(rest.cause),
    position: toSequence(rest.position),
    replayRequestedAt: date(rest.replayRequestedAt),
    discardedAt: date(rest.discardedAt),
  };
}

/** Another program may have stored something else. */
function readHistory(history: unknown): readonly Attempt[] {
  return Array.isArray(history) ? (history as Attempt[]) : [];
}

/** BSON would store absent parts as null. */
function definedParts(cause: DeadLetter['cause']): DeadLetter['cause'] {
  return JSON.parse(JSON.stringify(cause)) as DeadLetter['cause'];
}

function payloadFields(value: unknown): Pick<DeadLetterDocument, 'payload' | 'payloadJson'> {
  const json = jsonText(value ?? null);
  const payload = JSON.parse(json) as unknown;
  const isBson = json.length <= documentLimits.bsonFromCharsMax && fitsBson(payload);
  return isBson ? { payload } : { payload: null, payloadJson: json };
}

function toLetter(document: DeadLetterDocument): DeadLetter {
  const { _id, payload, payloadJson, createdAt, position, ...letter } = document;
  const time = (at: Date | null): string | null => at?.toISOString() ?? null;
  const stored = payloadJson === undefined ? payload : parseStored(payloadJson);
  return {
    ...letter,
    id: _id,
    payload: stored ?? null,
    error: stored === undefined ? `${letter.error} (the stored payload is damaged)` : letter.error,
    cause: typeof letter.cause === 'object' ? letter.cause : null,
    history: readHistory(letter.history),
    createdAt: createdAt.toISOString(),
    position: toPosition(position),
    replayedAt: time(letter.replayedAt),
    replayRequestedAt: time(letter.replayRequestedAt),
    discardedAt: time(letter.discardedAt),
  };
}
