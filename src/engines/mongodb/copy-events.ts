// Copies the events of commits to `events`. Copying is idempotent and safe to run concurrently: the unique index on
// the position admits every event once.

import type { Collection } from 'mongodb';
import { MillraceError } from '../../foundation/error.ts';
import { underOtherId } from './event-document.ts';
import { isDuplicate, majorityWait } from './connection.ts';
import type { EventDocument } from './collections.ts';

/** An event on a single server may be rolled back and would then be missing after readers have passed it. */
const onMajority = { readConcern: { level: 'majority' } } as const;

export async function copyEvents(
  events: Collection<EventDocument>,
  documents: readonly EventDocument[],
  { areNew }: { readonly areNew: boolean },
): Promise<void> {
  let remaining = areNew ? documents : await missing(events, documents);
  for (let attempt = 0; remaining.length > 0; attempt += 1) {
    if (await insertAll(events, remaining)) return;
    remaining = await missing(events, remaining);
    if (remaining.length === 0) return;
    if (attempt === majorityWait.attemptsMax) throw notCopied(remaining);
    const renamed = await underFreeIds(events, remaining, attempt);
    // No visible conflict: the conflicting document has not reached a majority yet.
    if (renamed === remaining) await majorityWait.sleep(attempt);
    remaining = renamed;
  }
}

/** If the position is free but the `_id` is not, the same event exists at another position. */
async function underFreeIds(
  events: Collection<EventDocument>,
  documents: readonly EventDocument[],
  attempt: number,
): Promise<readonly EventDocument[]> {
  const found = await events
    .find({ _id: { $in: documents.map(({ _id }) => _id) } }, onMajority)
    .project<{ readonly _id: string }>({ _id: 1 })
    .toArray();
  if (found.length === 0) return documents;
  const taken = new Set(found.map(({ _id }) => _id));
  return documents.map((document) =>
    taken.has(document._id) ? underOtherId(document, attempt) : document,
  );
}

/** Returns false if at least one key was a duplicate; the other documents were inserted. */
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
  // Commits are in order, so positions ascend.
  const found = await events
    .find({ position: { $gte: first.position, $lte: last.position } }, onMajority)
    .project<{ readonly position: number }>({ _id: 0, position: 1 })
    .toArray();
  const copied = new Set(found.map(({ position }) => position));
  return documents.filter(({ position }) => !copied.has(position));
}

function notCopied(remaining: readonly EventDocument[]): MillraceError {
  const [first] = remaining;
  return new MillraceError(
    'STORE_CORRUPT',
    `the event at position ${first?.position} cannot be stored: version ${first?.version} of '${first?.stream}' was written outside the store`,
    { details: { position: first?.position, stream: first?.stream } },
  );
}
