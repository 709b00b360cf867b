// Appends events and converts answers of the server to outcomes. An outcome needs only what the append returned.

import { withinTime } from '../../foundation/async/within-time.ts';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StoreEngine, WriteOutcome } from '../../store/store-engine.ts';
import { toClientEvent } from './event-record.ts';
import type { Client } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { actualRevisionOf, isKind, unanswered, unavailable } from './errors.ts';
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
  async function append(write: SentWrite, signal?: AbortSignal): Promise<WriteOutcome> {
    const sizeMs = Math.ceil(bytesOf(write) / bytesPerMs);
    // Before the search: an equal append may find the event while this search is on its way.
    const before = reader.highest;
    for (const [attempt, attemptMs] of attemptsMs.entries()) {
      const stored = await findEarlier(write);
      if (stored !== undefined) {
        return attempt === 0 ? duplicateOf(write, stored) : settled(write, stored, before);
      }
      const ms = attemptMs + sizeMs;
      const late = (): Promise<never> => Promise.reject(unanswered());
      const isLast = attempt === attemptsMs.length - 1;
      const appended = await connection.use((client) => {
        const answer = withinTime(transmit(client, write, ms), { ms: ms + lateMs, late });
        // An error would replace the client, which other requests use.
        return isLast ? answer : orUnanswered(answer);
      }, signal);
      if (appended === undefined) continue;
      onAppended();
      return settled(write, appended, before);
    }
    throw unanswered();
  }

  /** Another append stored the events. It may still wait for its answer, and is the one that is acknowledged. */
  function duplicateOf(write: SentWrite, stored: Appended): WriteOutcome {
    reader.saw(stored.sequence);
    const { revision, sequence } = recent.known(write, stored) ?? stored;
    return { kind: 'duplicate', revision, sequence };
  }

  /** Finds the events of an earlier attempt, if that may be stored and only the memory of the server would know. */
  async function findEarlier(write: SentWrite): Promise<Appended | undefined> {
    const after = recent.begin(write);
    const { stream, expected, rows } = write;
    const isExact = expected !== 'any' && expected !== 'exists';
    if (isExact || after === undefined) return undefined;
    return reader.findAll(stream, { eventIds: rows.map(({ eventId }) => eventId), after });
  }

  /** `before` is the highest position known before the append: what stands there was appended earlier. */
  function settled(write: SentWrite, appended: Appended, before: number): WriteOutcome {
    const earlier = recent.acknowledge(write, appended);
    if (earlier !== undefined) return { kind: 'duplicate', ...earlier };
    const { revision, sequence } = appended;
    reader.saw(sequence);
    return { kind: sequence <= before ? 'duplicate' : 'appended', revision, sequence };
  }

  // Without multi-stream appends, the store sends one write.
  return async ([write], { signal }) => {
    if (write === undefined) return [];
    try {
      const isChange = write.tombstone === true || write.retention !== undefined;
      const parts = { connection, reader, append };
      return [await (isChange ? writeChange(parts, write) : append(write, signal))];
    } catch (error) {
      const rejection = rejectionOf(error);
      if (rejection === undefined) throw unavailable(error);
      return [rejection];
    }
  };
}

/** The server returns no position for a duplicate in a deleted stream. */
async function transmit(client: Client, write: SentWrite, deadline: number): Promise<Appended> {
  const { stream, expected, rows, ...given } = write;
  const events = rows.map((row) => toClientEvent(stream, row, given));
  const options = { streamState: toStreamState(expected), deadline };
  const answer = await client.appendToStream(stream, events, options);
  const sequence = Number(answer.position?.commit ?? 0n);
  return { revision: Number(answer.nextExpectedRevision), sequence };
}

async function orUnanswered<Result>(answer: Promise<Result>): Promise<Result | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isKind(error, 'deadline-exceeded', 'timeout')) return undefined;
    throw error;
  }
}

function bytesOf({ rows }: SentWrite): number {
  return rows.reduce((sum, { payload, meta }) => sum + payload.length + meta.length, 0);
}

function rejectionOf(error: unknown): WriteOutcome | undefined {
  if (isKind(error, 'wrong-expected-version')) {
    return { kind: 'conflict', actual: actualRevisionOf(error) };
  }
  return isKind(error, 'stream-deleted', 'stream-tombstoned') ? { kind: 'deleted' } : undefined;
}

function toStreamState(expected: ExpectedRevision): 'any' | 'no_stream' | 'stream_exists' | bigint {
  if (expected === 'any') return 'any';
  if (expected === 'none') return 'no_stream';
  return expected === 'exists' ? 'stream_exists' : BigInt(expected);
}
