// Appends events and converts answers of the server to outcomes. An outcome needs only what the append returned.

import { withinTime } from '../../foundation/async/within-time.ts';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StoreEngine, StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
import { toClientEvent } from './event-record.ts';
import type { Client } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { actualRevisionOf, isKind, streamOf, unanswered, unavailable } from './errors.ts';
import { mergeWrites, type MergedWrite } from './merge-writes.ts';
import type { KurrentdbReader } from './reader.ts';
import { createRecentAppends, type Appended } from './recent-appends.ts';
import { writeChange, type SentWrite } from './stream-changes.ts';

export interface AppenderParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  /** Runs after every acknowledged append. */
  readonly onAppended: () => void;
}

/** The server does not answer an append while it writes an equal one, so the first attempts end early. */
const attemptsMs = [1_000, 2_000, 7_000] as const;
/** A large append has more time: as if it were sent at this speed. */
const bytesPerMs = 1_000;
/** The client does not end an append whose deadline a frozen server does not report. */
const lateMs = 500;

export function createKurrentdbAppender({
  connection,
  reader,
  onAppended,
}: AppenderParts): StoreEngine['write'] {
  const recent = createRecentAppends();

  /** Sends an append until it is answered, within its time. */
  async function append(
    writes: readonly SentWrite[],
    signal?: AbortSignal,
  ): Promise<readonly Stored[]> {
    const sizeMs = Math.ceil(bytesOf(writes) / bytesPerMs);
    let before = 0;
    const settle = (appended: readonly Appended[]): readonly Stored[] =>
      writes.map((write, at) => settled(write, appended[at] as Appended, before));
    for (const [attempt, attemptMs] of attemptsMs.entries()) {
      const stored = await findEarlier(writes);
      if (stored !== undefined) return attempt === 0 ? duplicates(writes, stored) : settle(stored);
      if (attempt === 0) before = reader.highest;
      const ms = attemptMs + sizeMs;
      const late = (): Promise<never> => Promise.reject(unanswered());
      const isLast = attempt === attemptsMs.length - 1;
      const appended = await connection.use((client) => {
        const answer = withinTime(transmit(client, writes, ms), { ms: ms + lateMs, late });
        // An error would replace the client, which other requests use.
        return isLast ? answer : orUnanswered(answer);
      }, signal);
      if (appended === undefined) continue;
      onAppended();
      return settle(appended);
    }
    throw unanswered();
  }

  /** Another append stored the events. It may still wait for its answer, and is the one that is acknowledged. */
  function duplicates(
    writes: readonly SentWrite[],
    stored: readonly Appended[],
  ): readonly Stored[] {
    return writes.map((write, at) => {
      const found = stored[at] as Appended;
      reader.saw(found.sequence);
      return { kind: 'duplicate', ...(recent.known(write, found) ?? found) };
    });
  }

  /** Finds the events of an earlier attempt, if that may be stored and only the memory of the server would know. */
  async function findEarlier(
    writes: readonly SentWrite[],
  ): Promise<readonly Appended[] | undefined> {
    const begun = writes.map((write) => recent.begin(write));
    if (!writes.some(({ expected }) => expected === 'any' || expected === 'exists')) {
      return undefined;
    }
    const found: Appended[] = [];
    for (const [at, { stream, rows }] of writes.entries()) {
      const after = begun[at];
      const eventIds = rows.map(({ eventId }) => eventId);
      const last = after === undefined ? after : await reader.findAll(stream, { eventIds, after });
      if (last === undefined) return undefined;
      found.push(last);
    }
    return found;
  }

  /** `before` is the highest position known before the append: what stands there was appended earlier. */
  function settled(write: SentWrite, appended: Appended, before: number): Stored {
    const earlier = recent.acknowledge(write, appended);
    if (earlier !== undefined) return { kind: 'duplicate', ...earlier };
    const { revision, sequence } = appended;
    reader.saw(sequence);
    return { kind: sequence <= before ? 'duplicate' : 'appended', revision, sequence };
  }

  async function writeAll(
    writes: readonly StreamWrite[],
    signal: AbortSignal | undefined,
  ): Promise<readonly WriteOutcome[]> {
    const [first] = writes;
    if (first?.tombstone === true || first?.retention !== undefined) {
      return [await writeChange({ connection, reader, append }, first)];
    }
    const merged = await mergeWrites(writes, reader);
    if (merged.kind === 'rejected') return rejectionAt(writes, merged.index, merged.outcome);
    const outcomes: WriteOutcome[] = [];
    for (const [at, stored] of (await append(merged.streams, signal)).entries()) {
      const { rows, parts } = merged.streams[at] as MergedWrite;
      for (const { index, end } of parts) {
        outcomes[index] = { ...stored, revision: stored.revision - rows.length + end };
      }
    }
    return outcomes;
  }

  return async (writes, { signal }) => {
    try {
      return await writeAll(writes, signal);
    } catch (error) {
      const outcome = outcomeOf(error);
      if (outcome === undefined) throw unavailable(error);
      const stream = streamOf(error);
      const at = writes.findIndex((each) => each.stream === stream);
      return rejectionAt(writes, Math.max(0, at), outcome);
    }
  };
}

interface Stored extends Appended {
  readonly kind: 'appended' | 'duplicate';
}

/** The server returns one position for all streams, and none for a duplicate in a deleted stream. */
async function transmit(
  client: Client,
  writes: readonly SentWrite[],
  deadline: number,
): Promise<readonly Appended[]> {
  const textsOnly = writes.length > 1;
  const requests = writes.map(({ stream, expected, rows, ...given }) => ({
    streamName: stream,
    expectedState: toStreamState(expected),
    events: rows.map((row) => toClientEvent(stream, row, { ...given, textsOnly })),
  }));
  const [only] = requests;
  if (only !== undefined && requests.length === 1) {
    const { streamName, expectedState: streamState, events } = only;
    const answer = await client.appendToStream(streamName, events, { streamState, deadline });
    const sequence = Number(answer.position?.commit ?? 0n);
    return [{ revision: Number(answer.nextExpectedRevision), sequence }];
  }
  const { position, responses } = await client.multiStreamAppend(requests);
  const revisions = new Map(responses.map(({ streamName, revision }) => [streamName, revision]));
  const sequence = Number(position);
  return writes.map(({ stream }) => ({ revision: Number(revisions.get(stream)), sequence }));
}

async function orUnanswered<Result>(answer: Promise<Result>): Promise<Result | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isKind(error, 'deadline-exceeded', 'timeout')) return undefined;
    throw error;
  }
}

function bytesOf(writes: readonly SentWrite[]): number {
  const rows = writes.flatMap((write) => write.rows);
  return rows.reduce((sum, { payload, meta }) => sum + payload.length + meta.length, 0);
}

function outcomeOf(error: unknown): WriteOutcome | undefined {
  if (isKind(error, 'wrong-expected-version')) {
    return { kind: 'conflict', actual: actualRevisionOf(error) };
  }
  return isKind(error, 'stream-deleted', 'stream-tombstoned') ? { kind: 'deleted' } : undefined;
}

/** Returns the outcomes of an append that wrote nothing: one is the rejection, the others are placeholders. */
function rejectionAt(
  writes: readonly StreamWrite[],
  at: number,
  rejection: WriteOutcome,
): readonly WriteOutcome[] {
  return writes.map((_write, index) =>
    index === at ? rejection : { kind: 'duplicate', revision: -1, sequence: 0 },
  );
}

function toStreamState(expected: ExpectedRevision): 'any' | 'no_stream' | 'stream_exists' | bigint {
  if (expected === 'any') return 'any';
  if (expected === 'none') return 'no_stream';
  return expected === 'exists' ? 'stream_exists' : BigInt(expected);
}
