// The global order. An append is committed by ONE insert: a document whose `_id` is the next number
// of a dense log (1, 2, 3, …) and which holds all events of the append, of all its streams.
//
//   decide on the state as of commit n  →  insert commit n + 1  →  copy its events into `events`
//
// Why this is enough, without transactions, counters, leases or clocks:
//
// - One writer wins. `_id` is unique, so each number is taken once. Whoever takes n + 1 had seen
//   commit n, and decided on exactly the state after it; everyone else fails on the key and decides
//   again. That makes the log a serial history: no revision of a stream is given out twice.
// - All or nothing. A document is inserted whole or not at all. Several streams are one document too.
// - Nothing appears behind a reader. n + 1 is inserted only by someone who has seen n, so the log
//   has no holes, ever, and readers go up to the last number. A writer that dies before its insert
//   has reserved nothing; a writer that wakes up late finds its number taken, and that is its fence.
// - `events` is derived. Copying is idempotent (unique on position), anyone who finds a commit whose
//   events were not yet copied copies them before reading past it, and only then is the commit
//   stripped of its events. So a writer may die anywhere.
//
// - Everybody gets a turn. A writer that lost often commits a claim, which needs no decision and so
//   wins soon: an empty commit that asks the others to leave the next number to it. They do, for a
//   while. Nothing depends on it but fairness: a claim whose writer died costs that while, once.
//
// All that is asked of the engine is a unique key on insert and reads of what was acknowledged.
// Updates need not be atomic, which they are not on FerretDB: the only one strips a commit of its
// events, and doing that twice is doing it once.

import { randomUUID } from 'node:crypto';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { coalesce } from './coalesce.ts';
import {
  commitId,
  isFull,
  missingCommit,
  numberOf,
  pointOf,
  type LogPoint,
} from './commit-number.ts';
import { isDuplicate } from './mongodb-connection.ts';
import type { CommitDocument, EventDocument, MongodbCollections } from './mongodb-schema.ts';
import { copyEvents } from './copy-events.ts';
import { streamEventFields, type StreamEvent } from './stream-states.ts';

export interface CommitLog {
  /** The last commit that this process knows of. */
  readonly end: LogPoint;
  /** Everything up to here lies in `events`. */
  readonly head: LogPoint;
  /** Looks for commits of others and copies what is not yet in `events`; resolves to the head. */
  advance(): Promise<LogPoint>;
  /**
   * Takes the number behind `basis`. False: someone else did. `onCommitted` runs at the very moment
   * at which the end moves, unless the commit was already seen from outside.
   */
  commit(basis: LogPoint, batch: Batch, onCommitted: () => void): Promise<boolean>;
  /** The commit at the end asks for the next number. */
  readonly isClaimed: boolean;
  /** Resolves when nobody else has claimed the next number, or has waited too long to take it. */
  turnOf(by: string): Promise<void>;
  /** Asks the others to leave the next number to this batch. */
  claim(by: string, at: Date): Promise<void>;
  /** Whether the commit of this number is the one of this batch. */
  isOurs(commit: number, by: string): Promise<boolean>;
  /** Removes what is left of commits that were never made. */
  sweep(): Promise<void>;
  /** Resolves when nothing is under way any more. */
  close(): Promise<void>;
}

interface Batch {
  /** Stays the same when the batch is tried again. */
  readonly by: string;
  readonly at: Date;
  readonly events: readonly EventDocument[];
  /** Roughly what the events take. */
  readonly bytes: number;
  /** Together small enough for one document; several: the commit only refers to them. */
  readonly portions: readonly (readonly EventDocument[])[];
}

interface UntidyCommit {
  readonly _id: string;
  readonly parts: readonly string[];
}

export interface CommitLogOptions {
  /** What others committed; undefined: too much to say. Runs when the end moves. */
  readonly onForeign: (events: readonly StreamEvent[] | undefined) => void;
  /** Whether anybody wants to know what it was. */
  readonly isForeignWanted: () => boolean;
  readonly onMore: () => void;
  readonly onFailure: (error: unknown) => void;
}

const logLimits = {
  /**
   * Nobody takes a number while a commit that lies further back still holds its events: whoever
   * opens the log has to look at so many commits, and no more.
   */
  windowCommits: 256,
  /** Of own events that wait in memory to be copied: more, and appends wait for the copying. */
  pendingBytes: 16 * 1_048_576,
  /** Commits that are read, or stripped, at once; FerretDB never answers a hundred updates. */
  pageCommits: 32,
  /** When others wrote more than this, knowing what it was is not worth a query. */
  foreignEventsMax: 1_000,
  /** How long the number behind a claim is left to whoever made it. */
  claimMs: 1_000,
  claimTriesMax: 100,
} as const;

export async function openCommitLog(
  collections: MongodbCollections,
  options: CommitLogOptions,
): Promise<CommitLog> {
  const { commits, events, parts } = collections;
  let end: LogPoint = { commit: 0, position: 0 };
  let head = end;
  /** Own commits between head and end, in order, with the events that they brought. */
  let pending: {
    readonly commit: CommitDocument;
    readonly events: readonly EventDocument[];
    readonly bytes: number;
  }[] = [];
  /** Commits that still hold their events although these lie in `events`. */
  let untidy: UntidyCommit[] = [];
  /** The commit at the end is a claim, and this is what it asks for. */
  let claimed: { readonly by: string; readonly untilMs: number } | undefined;
  let closed = false;

  const run = coalesce(async () => {
    const before = head.position;
    await copyPending();
    for (;;) {
      if (closed) break;
      const found = await commitsBehind(end.commit);
      // Our own writer may have moved the end meanwhile, by a commit that we now see from outside.
      const fresh = found.filter(({ _id }) => numberOf(_id) > end.commit);
      if (fresh.length === 0) break;
      await copyPending();
      await takeForeign(fresh);
      if (found.length < logLimits.pageCommits) break;
      await skipAhead();
    }
    await copyPending();
    if (head.position > before) options.onMore();
    void tidy().catch(options.onFailure);
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

  /** What lies further back than the window was copied by whoever went on from there. */
  async function skipAhead(): Promise<void> {
    const last = await lastCommit();
    // The last may be a claim, and who claims does not look how far the copying got: one more.
    const target = numberOf(last?._id ?? '0') - logLimits.windowCommits - 1;
    if (target <= end.commit) return;
    const projection = { events: 0, parts: 0 };
    const commit = await commits.findOne({ _id: commitId(target) }, { projection });
    if (commit === null) throw missingCommit(target);
    end = pointOf(commit);
    head = end;
    options.onForeign(undefined);
  }

  /** The next number is asked for alone, as it is mostly not there; then come all behind it. */
  async function commitsBehind(number: number): Promise<readonly CommitDocument[]> {
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
        batch.flatMap((each) => each.events),
        { areNew: true },
      );
      pending = pending.slice(batch.length);
      for (const { commit } of batch) {
        untidy.push(untidyOf(commit));
        // One that was also seen from outside may lie behind us already.
        const point = pointOf(commit);
        if (point.commit > head.commit) head = point;
      }
    }
  }

  async function takeForeign(found: readonly CommitDocument[]): Promise<void> {
    const held = await copyForeign(found);
    const changes = await changesOf(found, held);
    const { by, claim } = found.at(-1) as CommitDocument;
    const last = pointOf(found.at(-1) as CommitDocument);
    // Nothing waits from here on, so that nobody sees the one without the other.
    if (last.commit > head.commit) head = last;
    // Some of them may be our own, whose answers came meanwhile: they moved the end themselves, and
    // maybe further than this. What is told again would take back what was told after it.
    if (last.commit <= end.commit) return;
    const news = changes?.filter(({ position }) => position > end.position);
    end = last;
    const untilMs = performance.now() + logLimits.claimMs;
    claimed = claim === true ? { by, untilMs } : undefined;
    options.onForeign(news);
  }

  async function copyForeign(
    found: readonly CommitDocument[],
  ): Promise<readonly (readonly EventDocument[])[]> {
    const held = await Promise.all(found.map(eventsOf));
    await copyEvents(events, held.flat(), { areNew: false });
    untidy.push(...found.filter(isFull).map(untidyOf));
    return held;
  }

  async function changesOf(
    found: readonly CommitDocument[],
    held: readonly (readonly EventDocument[])[],
  ): Promise<readonly StreamEvent[] | undefined> {
    if (!options.isForeignWanted()) return undefined;
    const count = found.reduce((sum, commit) => sum + commit.count, 0);
    if (count > logLimits.foreignEventsMax) return undefined;
    if (found.every((commit) => commit.count === 0 || isFull(commit))) return held.flat();
    const from = found[0]?.from ?? 0;
    const changes = await events
      .find({ position: { $gte: from, $lt: from + count } })
      .sort({ position: 1 })
      .project<StreamEvent>(streamEventFields)
      .toArray();
    // A commit whose events were scavenged does not say any more what it changed.
    return changes.length < count ? undefined : changes;
  }

  async function eventsOf(commit: CommitDocument): Promise<readonly EventDocument[]> {
    if (commit.parts === undefined) return commit.events ?? [];
    const found = await Promise.all(commit.parts.map((_id) => parts.findOne({ _id })));
    if (!found.includes(null)) return found.flatMap((part) => part?.events ?? []);
    // Another process was faster; it removes the parts only after the commit says so.
    const again = await commits.findOne({ _id: commit._id });
    if (again !== null && !isFull(again)) return [];
    throw new MillraceError('STORE_CORRUPT', `parts of commit ${commit._id} are missing`, {
      details: { commit: commit._id },
    });
  }

  const tidy = coalesce(async () => {
    for (let left = untidy.length; left > 0; left -= logLimits.pageCommits) {
      const some = untidy.slice(0, Math.min(left, logLimits.pageCommits));
      await commits.bulkWrite(
        some.map(({ _id }) => ({
          updateOne: { filter: { _id }, update: { $unset: { events: '', parts: '' } } },
        })),
        { ordered: false },
      );
      untidy = untidy.slice(some.length);
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
    // Never the same twice: a try that is repeated must not meet what the first one left behind.
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
      const full = [...untidy, ...pending.map(({ commit }) => commit)];
      const oldest = Math.min(...full.map(({ _id }) => numberOf(_id)));
      if (number - oldest >= logLimits.windowCommits) {
        await run();
        await tidy();
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
      for (let tries = 0; tries < logLimits.claimTriesMax; tries += 1) {
        const last = await lastCommit();
        // Someone else's turn comes first.
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
      await tidy();
      // Every number up to the head is taken: what was laid out for one of them is either copied
      // or was never committed, and cannot be any more.
      await parts.deleteMany({ slot: { $lte: head.commit } });
    },
    async close() {
      try {
        await run();
        await tidy();
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

/** Without the events: the list may grow while the database is away. */
function untidyOf({ _id, parts = [] }: CommitDocument): UntidyCommit {
  return { _id, parts };
}
