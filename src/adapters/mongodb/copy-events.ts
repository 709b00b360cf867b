// Brings the events of commits into `events`, however often and by however many at once: an event
// is there when its position is, and the unique index on it lets it in once.

import type { Collection } from 'mongodb';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { underOtherId } from './event-document.ts';
import { isDuplicate } from './mongodb-connection.ts';
import type { EventDocument } from './mongodb-schema.ts';

/** Tries of one copy; together they wait for some ten seconds. */
const triesMax = 12;

/** What only one server has may still be taken back, and would then be missing behind readers. */
const kept = { readConcern: { level: 'majority' } } as const;

export async function copyEvents(
  events: Collection<EventDocument>,
  documents: readonly EventDocument[],
  { areNew }: { readonly areNew: boolean },
): Promise<void> {
  let left = areNew ? documents : await missing(events, documents);
  for (let attempt = 0; left.length > 0; attempt += 1) {
    if (await insertAll(events, left)) return;
    left = await missing(events, left);
    if (left.length === 0) return;
    if (attempt === triesMax) throw notCopied(left);
    const renamed = await underFreeIds(events, left, attempt);
    // Nothing seen that is in the way: what is has not yet reached most of the servers.
    if (renamed === left) await systemClock.sleep(5 * 2 ** attempt);
    left = renamed;
  }
}

/** Where the position is free and the `_id` is not, the same event stands in another place. */
async function underFreeIds(
  events: Collection<EventDocument>,
  documents: readonly EventDocument[],
  attempt: number,
): Promise<readonly EventDocument[]> {
  const found = await events
    .find({ _id: { $in: documents.map(({ _id }) => _id) } }, kept)
    .project<{ readonly _id: string }>({ _id: 1 })
    .toArray();
  if (found.length === 0) return documents;
  const taken = new Set(found.map(({ _id }) => _id));
  return documents.map((document) =>
    taken.has(document._id) ? underOtherId(document, attempt) : document,
  );
}

/** False: some key was taken. Everything else was inserted all the same. */
async function insertAll(
  events: Collection<EventDocument>,
  documents: readonly EventDocument[],
): Promise<boolean> {
  try {
    await events.insertMany([...documents], { ordered: false });
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}

async function missing(
  events: Collection<EventDocument>,
  documents: readonly EventDocument[],
): Promise<readonly EventDocument[]> {
  const [first] = documents;
  const last = documents.at(-1);
  if (first === undefined || last === undefined) return [];
  // Commits are given in their order, and so their positions ascend.
  const found = await events
    .find({ position: { $gte: first.position, $lte: last.position } }, kept)
    .project<{ readonly position: number }>({ _id: 0, position: 1 })
    .toArray();
  const there = new Set(found.map(({ position }) => position));
  return documents.filter(({ position }) => !there.has(position));
}

function notCopied(left: readonly EventDocument[]): MillraceError {
  const [first] = left;
  return new MillraceError(
    'STORE_CORRUPT',
    `the event at position ${first?.position} cannot be stored: someone else wrote version ${first?.version} of '${first?.aggregateId}'`,
    { details: { position: first?.position, stream: first?.aggregateId } },
  );
}
