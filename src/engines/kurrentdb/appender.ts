// Appends events and converts answers of the server to outcomes. An outcome needs only what the append returned.

import { withinTime } from '../../foundation/async/within-time.ts';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import type { StoreEngine, WriteOutcome } from '../../store/store-engine.ts';
import { toClientEvent } from './event-record.ts';
import type { Client } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { isKind, rejectionOf, unanswered } from './errors.ts';
import type { KurrentdbReader } from './reader.ts';
import { writeChange, type SentWrite } from './stream-changes.ts';

export interface AppenderParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  /** Runs after every acknowledged append. */
  readonly onAppended: () => void;
}

/** The last revision of an append, and its position. */
type Appended = Pick<StoredRow, 'revision' | 'sequence'>;

interface RecentAppend {
  /** The highest known position before the first attempt: its events have higher ones. */
  readonly after: number;
  /** The result, if the append was acknowledged. */
  readonly appended?: Appended;
}

const recentMax = 10_000;
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
  /** The last appends, by stream and first event. */
  const recent = new Map<string, RecentAppend>();

  function remember(key: string, entry: RecentAppend): RecentAppend {
    recent.delete(key);
    recent.set(key, entry);
    if (recent.size > recentMax) recent.delete(recent.keys().next().value ?? '');
    return entry;
  }

  /** Sends an append until it is answered, within its time. */
  async function append(write: SentWrite, signal?: AbortSignal): Promise<WriteOutcome> {
    const { stream, expected, rows } = write;
    const sizeMs = Math.ceil(bytesOf(write) / bytesPerMs);
    const eventIds = rows.map(({ eventId }) => eventId);
    const key = `${stream}\n${eventIds[0] ?? ''}`;
    // Before the search: an equal append may find the event while this search is on its way.
    const before = reader.highest;
    const earlier = recent.get(key);
    const { after } = earlier ?? remember(key, { after: before });
    for (const [attempt, attemptMs] of attemptsMs.entries()) {
      const isRepeat = attempt > 0 || earlier !== undefined;
      // The server compares an exact revision with its log, but recognizes other repeats only while it remembers the ids.
      if (isRepeat && (expected === 'any' || expected === 'exists')) {
        const stored = await reader.findAll(stream, eventIds, after);
        // Another call stored the events. It may still wait for its answer, and is the one that is acknowledged.
        if (stored !== undefined) return settled(key, stored, attempt === 0 ? Infinity : before);
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
      return settled(key, appended, before);
    }
    throw unanswered();
  }

  /**
   * `before` is the highest position known before the append: what stands there was appended earlier. Of equal appends,
   * only the first one that is answered has appended the events.
   */
  function settled(key: string, { revision, sequence }: Appended, before: number): WriteOutcome {
    reader.saw(sequence);
    const { after = before, appended } = recent.get(key) ?? {};
    // An append that only begins with the same event is another one.
    if (appended?.revision === revision) return { kind: 'duplicate', ...appended };
    if (sequence <= before) return { kind: 'duplicate', revision, sequence };
    remember(key, { after, appended: { revision, sequence } });
    return { kind: 'appended', revision, sequence };
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
      if (rejection === undefined) throw error;
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

function toStreamState(expected: ExpectedRevision): 'any' | 'no_stream' | 'stream_exists' | bigint {
  if (expected === 'any') return 'any';
  if (expected === 'none') return 'no_stream';
  return expected === 'exists' ? 'stream_exists' : BigInt(expected);
}
