// The global order. One insert commits an append. The inserted document has the next number of a dense log (1, 2, 3, …)
// as its `_id`, and contains all events of the append, of all its streams.
//
//   decide on the state as of commit n  →  insert commit n + 1  →  copy its events into `events`
//
// This order needs no transactions, counters, leases or clocks:
//
// - One writer wins. `_id` is unique, so every number is taken once. The writer of n + 1 has seen commit n and decided
//   on exactly the state after it. The other writers fail on the duplicate key and decide again. So the log is a serial
//   history, and no revision of a stream is assigned twice.
// - All or nothing. A document is inserted whole or not at all, also with events of several streams.
// - No event appears before the position of a reader. A writer inserts n + 1 only after it has seen n. So the log has
//   no gaps, and readers can read up to the last number. A writer that dies before its insert has reserved nothing. A
//   writer that was suspended finds its number taken, which fences it.
// - `events` is derived. Copying is idempotent (unique position). A process that finds a commit with uncopied events
//   copies them before it reads past the commit. Only then the commit drops its events. So a writer may die at any
//   point.
// - Fairness. A writer that lost often commits a claim, which reserves the next number for a limited time. A claim is an
//   empty commit: it needs no decision, so it succeeds soon. Only fairness depends on claims.
//
// The engine needs only unique keys and reads of acknowledged writes. Updates need not be atomic (they are not on
// FerretDB): the only update drops the events of a commit, and it is idempotent.

import { randomUUID } from 'node:crypto';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { coalesce } from './coalesce.ts';
import {
  commitId,
  holdsEvents,
  missingCommit,
  numberOf,
  pointOf,
  type CommitDocument,
  type EventDocument,
  type LogPoint,
  type MongodbCollections,
} from './collections.ts';
import { isDuplicate } from './connection.ts';
import { copyEvents } from './copy-events.ts';
import { withStream } from './aggregate-id.ts';

export interface CommitLog {
  /** The last commit that this process knows of. */
  readonly end: LogPoint;
  /** All events up to this point are in `events`. */
  readonly head: LogPoint;
  /** Reads commits of other processes and copies missing events; resolves to the head. */
  advance(): Promise<LogPoint>;
  /**
   * Takes the number after `basis`; returns false if another process took it. `onCommitted` runs synchronously with
   * the change of `end`, unless `advance` has already read this commit.
   */
  commit(basis: LogPoint, batch: Batch, onCommitted: () => void): Promise<boolean>;
  /** Whether the last commit is a claim. */
  readonly isClaimed: boolean;
  /** Resolves when no other writer has claimed the next number, or its claim has expired. */
  turnOf(by: string): Promise<void>;
  /** Reserves the next number for this batch. */
  claim(by: string, at: Date): Promise<void>;
  /** Whether the commit with this number belongs to this batch. */
  isOurs(commit: number, by: string): Promise<boolean>;
  /** Deletes parts of commits that were never made. */
  sweep(): Promise<void>;
  /** Resolves when no work is running. */
  close(): Promise<void>;
}

interface Batch {
  /** The id of the batch, the same for every attempt. */
  readonly by: string;
  readonly at: Date;
  readonly events: readonly EventDocument[];
  /** The approximate size of the events. */
  readonly bytes: number;
  /** The events, in groups that fit into one document each; with several groups, the commit refers to parts. */
  readonly portions: readonly (readonly EventDocument[])[];
}

/** A commit that still holds its events although they are copied. */
interface CopiedCommit {
  readonly _id: string;
  readonly parts: readonly string[];
}

export interface CommitLogOptions {
  /** Runs when commits of other processes change `end`. */
  readonly onForeign: () => void;
  readonly onMore: () => void;
  readonly onFailure: (error: unknown) => void;
}

const logLimits = {
  /**
   * No number is taken while an older commit than this still holds its events. So opening the log reads at most
   * this number of commits.
   */
  windowCommits: 256,
  /** The size of events of this process that wait to be copied; above it, appends wait for the copy. */
  pendingBytes: 16 * 1_048_576,
  /** The number of commits read or updated together; FerretDB sends no response to a hundred updates. */
  pageCommits: 32,
  /** How long the number after a claim is reserved. */
  claimMs: 1_000,
  claimAttemptsMax: 100,
} as const;

export async function openCommitLog(
  collections: MongodbCollections,
  options: CommitLogOptions,
): Promise<CommitLog> {
  const { commits, events, parts } = collections;
  let end: LogPoint = { commit: 0, position: 0 };
  let head = end;
  /** Commits of this process between head and end, in order, with their events. */
  let pending: {
    readonly commit: CommitDocument;
    readonly events: readonly EventDocument[];
    readonly bytes: number;
  }[] = [];
  let copied: CopiedCommit[] = [];
  /** Set while the last commit is a claim. */
  let claimed: { readonly by: string; readonly untilMs: number } | undefined;
  let closed = false;

  const run = coalesce(async () => {
    const before = head.position;
    await copyPending();
    for (;;) {
      if (closed) break;
      const found = await commitsAfter(end.commit);
      // The writer of this process may have changed `end` during the query, by a commit that the query returned too.
      const fresh = found.filter(({ _id }) => numberOf(_id) > end.commit);
      if (fresh.length === 0) break;
      await copyPending();
      await takeForeign(fresh);
      if (found.length < logLimits.pageCommits) break;
      await skipAhead();
    }
    await copyPending();
    if (head.position > before) options.onMore();
    void dropEvents().catch(options.onFailure);
  });

  async function lastCommit(): Promise<CommitDocument | undefined> {
    const [last] = await commits
      .find()
      .sort({ _id: -1 })
      .limit(1)
      .project<CommitDocument>({ events: 0, parts: 0 })
      .toArray();
    return last;
  }

  /** Commits before the window were copied by the writers that continued the log. */
  async function skipAhead(): Promise<void> {
    const last = await lastCommit();
    // Subtract one more, because the last commit may be a claim, and claims do not check the window.
    const target = numberOf(last?._id ?? '0') - logLimits.windowCommits - 1;
    if (target <= end.commit) return;
    const projection = { events: 0, parts: 0 };
    const commit = await commits.findOne({ _id: commitId(target) }, { projection });
    if (commit === null) throw missingCommit(target);
    end = pointOf(commit);
    head = end;
    options.onForeign();
  }

  /** Queries the next number alone, because usually it does not exist, and then the following ones. */
  async function commitsAfter(number: number): Promise<readonly CommitDocument[]> {
    const next = await commits.findOne({ _id: commitId(number + 1) });
    if (next === null) return [];
    const rest = await commits
      .find({ _id: { $gt: next._id } })
      .sort({ _id: 1 })
      .limit(logLimits.pageCommits - 1)
      .toArray();
    const all = [next, ...rest];
    for (const [index, { _id }] of all.entries()) {
      if (_id !== commitId(number + 1 + index)) throw missingCommit(number + 1 + index);
    }
    return all;
  }

  async function copyPending(): Promise<void> {
    while (pending.length > 0) {
      const batch = [...pending];
      await copyEvents(
        events,
        batch.flatMap((commit) => commit.events),
        { areNew: true },
      );
      pending = pending.slice(batch.length);
      for (const { commit } of batch) {
        copied.push(copiedCommit(commit));
        // If `advance` has read the commit too, the head may already be past it.
        const point = pointOf(commit);
        if (point.commit > head.commit) head = point;
      }
    }
  }

  async function takeForeign(found: readonly CommitDocument[]): Promise<void> {
    const foreign = await Promise.all(found.map(eventsOf));
    await copyEvents(events, foreign.flat(), { areNew: false });
    copied.push(...found.filter(holdsEvents).map(copiedCommit));
    const { by, claim } = found.at(-1) as CommitDocument;
    const last = pointOf(found.at(-1) as CommitDocument);
    // The code below is synchronous, so that head, end and states change together.
    if (last.commit > head.commit) head = last;
    // Responses to commits of this process may have arrived during the queries and moved `end` past this point.
    if (last.commit <= end.commit) return;
    end = last;
    const untilMs = performance.now() + logLimits.claimMs;
    claimed = claim === true ? { by, untilMs } : undefined;
    options.onForeign();
  }

  async function eventsOf(commit: CommitDocument): Promise<readonly EventDocument[]> {
    if (commit.parts === undefined) return (commit.events ?? []).map(withStream);
    const found = await Promise.all(commit.parts.map((_id) => parts.findOne({ _id })));
    if (!found.includes(null)) return found.flatMap((part) => part?.events ?? []).map(withStream);
    // Another process may have copied them; it deletes parts only after the update of the commit.
    const again = await commits.findOne({ _id: commit._id });
    if (again !== null && !holdsEvents(again)) return [];
    throw new MillraceError('STORE_CORRUPT', `parts of commit ${commit._id} are missing`, {
      details: { commit: commit._id },
    });
  }

  const dropEvents = coalesce(async () => {
    for (let left = copied.length; left > 0; left -= logLimits.pageCommits) {
      const some = copied.slice(0, Math.min(left, logLimits.pageCommits));
      await commits.bulkWrite(
        some.map(({ _id }) => ({
          updateOne: { filter: { _id }, update: { $unset: { events: '', parts: '' } } },
        })),
        { ordered: false },
      );
      copied = copied.slice(some.length);
      await removeParts(some.flatMap((commit) => commit.parts));
    }
  });

  async function removeParts(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((_id) => parts.deleteOne({ _id })));
  }

  async function compose(number: number, from: number, batch: Batch): Promise<CommitDocument> {
    const { by, at, portions } = batch;
    const count = batch.events.length;
    const document = { _id: commitId(number), from, count, by, at };
    if (portions.length <= 1) return { ...document, events: batch.events };
    // A new id per attempt: a retry must not conflict with parts of the first attempt.
    const staged = portions.map((portion) => ({
      _id: `${document._id}/${randomUUID()}`,
      slot: number,
      events: portion,
    }));
    for (const part of staged) await parts.insertOne(part);
    return { ...document, parts: staged.map(({ _id }) => _id) };
  }

  await skipAhead();
  await run();

  return {
    get end() {
      return end;
    },
    get head() {
      return head;
    },
    get isClaimed() {
      return claimed !== undefined;
    },
    async advance() {
      await run();
      return head;
    },
    async commit(basis, batch, onCommitted) {
      const number = basis.commit + 1;
      const pendingBytes = pending.reduce((sum, { bytes }) => sum + bytes, 0);
      if (pendingBytes >= logLimits.pendingBytes) await run();
      const withEvents = [...copied, ...pending.map(({ commit }) => commit)];
      const oldest = Math.min(...withEvents.map(({ _id }) => numberOf(_id)));
      if (number - oldest >= logLimits.windowCommits) {
        await run();
        await dropEvents();
      }
      const document = await compose(number, basis.position + 1, batch);
      try {
        await commits.insertOne(document);
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        if (!(await isOurs(number, batch.by))) {
          await removeParts(document.parts ?? []);
          return false;
        }
      }
      if (end.commit === basis.commit) {
        end = pointOf(document);
        claimed = undefined;
        pending.push({ commit: document, events: batch.events, bytes: batch.bytes });
        onCommitted();
        void run().catch(options.onFailure);
      }
      return true;
    },
    async turnOf(by) {
      for (let waitMs = 5; ; waitMs = Math.min(50, waitMs * 2)) {
        if (claimed === undefined || claimed.by === by) return;
        if (performance.now() > claimed.untilMs) return;
        await systemClock.sleep(waitMs);
        await run();
      }
    },
    async claim(by, at) {
      for (let attempt = 0; attempt < logLimits.claimAttemptsMax; attempt += 1) {
        const last = await lastCommit();
        // The next number is already claimed.
        if (last?.claim === true) return;
        const { commit, position } =
          last === undefined ? { commit: 0, position: 0 } : pointOf(last);
        const _id = commitId(commit + 1);
        try {
          await commits.insertOne({ _id, from: position + 1, count: 0, by, at, claim: true });
          return;
        } catch (error) {
          if (!isDuplicate(error)) throw error;
        }
      }
    },
    isOurs,
    async sweep() {
      await run();
      await dropEvents();
      // Every number up to the head is taken: its parts are either copied or can never be committed.
      await parts.deleteMany({ slot: { $lte: head.commit } });
    },
    async close() {
      try {
        await run();
        await dropEvents();
      } catch (error) {
        options.onFailure(error);
      }
      closed = true;
    },
  };

  async function isOurs(number: number, by: string): Promise<boolean> {
    return (await commits.findOne({ _id: commitId(number) }))?.by === by;
  }
}

/** Omits the events, because the list may grow during an outage. */
function copiedCommit({ _id, parts = [] }: CommitDocument): CopiedCommit {
  return { _id, parts };
}
