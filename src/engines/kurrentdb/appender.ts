// Appends events and converts responses of the server to outcomes. An outcome needs only what the append returned.

import { withinTime } from '../../foundation/async/within-time.ts';
import { hasCode } from '../../foundation/error.ts';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StreamWrite, WriteOptions, WriteOutcome } from '../../store/store-engine.ts';
import { toClientEvent } from './event-record.ts';
import type { Client, ClientEvent } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import {
  actualRevisionOf,
  isKind,
  isTransient,
  streamOf,
  unanswered,
  unavailable,
} from './errors.ts';
import { mergeWrites, type MergedWrite } from './merge-writes.ts';
import type { KurrentdbReader } from './reader.ts';
import { changesStream, metadataOf, writeChange } from './stream-changes.ts';
import { createRecentAppends, isCheckedByMemory } from './recent-appends.ts';

export interface AppenderParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  /** Runs after every acknowledged append. */
  readonly onAppended: () => void;
}

export type KurrentdbWrite = (
  writes: readonly StreamWrite[],
  options: WriteOptions,
) => Promise<readonly WriteOutcome[]>;

/** The server does not answer an append while it writes an equal one, so the first attempts end early. */
const attemptsMs = [1_000, 2_000, 7_000] as const;
/** A large append has more time: as if it were sent at this speed. */
const bytesPerMs = 1_000;
/** The client does not end an append whose deadline a frozen server does not report. */
const lateMs = 500;
/** The longest search for the position of a duplicate. */
const searchMs = 2_000;
const acknowledgedMax = 10_000;

export function createKurrentdbAppender(parts: AppenderParts): KurrentdbWrite {
  const { connection, reader, onAppended } = parts;
  const recent = createRecentAppends();
  /** The highest position of an acknowledged append. */
  let highest = 0;
  /** The newest acknowledged positions: equal appends at the same time have the same one. */
  const acknowledged = new Set<number>();

  /** `before` is the highest position known before the append: what stands there was appended earlier. */
  function kindOf(sequence: number, before: number): 'appended' | 'duplicate' {
    if (sequence <= before || acknowledged.has(sequence)) return 'duplicate';
    acknowledged.add(sequence);
    for (const oldest of acknowledged) {
      if (acknowledged.size <= acknowledgedMax) break;
      acknowledged.delete(oldest);
    }
    highest = Math.max(highest, sequence);
    return 'appended';
  }

  async function appendOne(
    write: StreamWrite,
    signal: AbortSignal | undefined,
  ): Promise<WriteOutcome> {
    const { stream, expected, rows, retention } = write;
    const data = retention === undefined ? {} : await metadataOf(reader, rows, retention);
    if (data === undefined) return { kind: 'deleted' };
    const events = rows.map((row) =>
      toClientEvent(stream, row, retention === undefined ? {} : { data }),
    );
    const streamState = toStreamState(expected);
    const sent = await send([write], signal, (client, deadline) =>
      client.appendToStream(stream, events, { streamState, deadline }),
    );
    if ('found' in sent) return sent.found[0] as WriteOutcome;
    const revision = Number(sent.result.nextExpectedRevision);
    const { position } = sent.result;
    recent.acknowledged(write, revision);
    // The server returns no position for a duplicate in a deleted stream.
    if (position === undefined) {
      return { kind: 'duplicate', revision, sequence: await firstSequence(write) };
    }
    const sequence = Number(position.commit);
    return { kind: kindOf(sequence, sent.before), revision, sequence };
  }

  async function appendMany(
    writes: readonly StreamWrite[],
    signal: AbortSignal | undefined,
  ): Promise<readonly WriteOutcome[]> {
    const merged = await mergeWrites(writes, reader);
    if (merged.kind === 'rejected') return rejectionAt(writes, merged.index, merged.outcome);
    const requests = merged.streams.map(({ stream, expected, rows }) => ({
      streamName: stream,
      expectedState: toStreamState(expected),
      events: rows.map((row): ClientEvent => toClientEvent(stream, row, { textsOnly: true })),
    }));
    const sent = await send(merged.streams, signal, (client) => sendAll(client, requests));
    if ('found' in sent) return outcomesOf(merged.streams, (at) => sent.found[at]);
    const appended = await Promise.all(
      merged.streams.map(async (write): Promise<Appended> => {
        const revision = sent.result.revisions.get(write.stream) ?? 0;
        recent.acknowledged(write, revision);
        return { revision, sequences: await sequencesOf(write, revision) };
      }),
    );
    return outcomesOf(merged.streams, (at) => {
      const { revision = 0, sequences } = appended[at] ?? {};
      const last = sequences?.get(revision) ?? sent.result.position;
      return {
        kind: kindOf(last, sent.before),
        revision,
        sequence: sent.result.position,
        sequences,
      };
    });
  }

  /** Sends an append until it is answered, within its time. */
  async function send<Result>(
    writes: readonly StreamWrite[],
    signal: AbortSignal | undefined,
    work: (client: Client, deadlineMs: number) => Promise<Result>,
  ): Promise<Sent<Result>> {
    const before = Math.max(highest, reader.highest);
    const revisions = writes.map(({ stream }) => recent.revisionBefore(stream));
    const isRepeated = writes.some((write) => recent.searchAfter(write) !== undefined);
    const earlier = isRepeated ? await findEarlier(writes, revisions) : undefined;
    if (earlier !== undefined) return { found: earlier.map(asDuplicate) };
    const sizeMs = Math.ceil(bytesOf(writes) / bytesPerMs);
    for (const [attempt, attemptMs] of attemptsMs.entries()) {
      const deadlineMs = attemptMs + sizeMs;
      const isLast = attempt === attemptsMs.length - 1;
      try {
        const result = await connection.use(async (client) => {
          const answer = withinTime(work(client, deadlineMs), {
            ms: deadlineMs + lateMs,
            late: () => Promise.reject(unanswered()),
          });
          // An error would replace the client, which other requests use.
          return isLast ? answer : orUnanswered(answer);
        }, signal);
        if (result !== 'unanswered') {
          onAppended();
          return { result, before };
        }
      } catch (error) {
        if (isTransient(error) || hasCode(error, 'ABORTED')) remember(writes, revisions);
        throw error;
      }
      remember(writes, revisions);
      const found = await findEarlier(writes, revisions);
      if (found !== undefined) {
        return {
          found: found.map((each) => ({ ...each, kind: kindOf(each.sequence, before) })),
        };
      }
    }
    throw unanswered();
  }

  function remember(writes: readonly StreamWrite[], revisions: readonly number[]): void {
    if (!writes.some(isCheckedByMemory)) return;
    for (const [at, write] of writes.entries()) recent.failed(write, revisions[at] ?? -1);
  }

  /** Searches the events of an earlier attempt; undefined unless all are found. */
  async function findEarlier(
    writes: readonly StreamWrite[],
    revisions: readonly number[],
  ): Promise<readonly FoundAppend[] | undefined> {
    if (!writes.some(isCheckedByMemory)) return undefined;
    const found: FoundAppend[] = [];
    for (const [at, write] of writes.entries()) {
      const rows = await reader.findRecent(write.stream, {
        eventIds: write.rows.map(({ eventId }) => eventId),
        after: recent.searchAfter(write) ?? revisions[at] ?? -1,
      });
      const last = rows?.at(-1);
      if (rows === undefined || last === undefined) return undefined;
      const sequences = new Map(rows.map(({ revision, sequence }) => [revision, sequence]));
      found.push({ kind: 'appended', ...last, sequences });
    }
    for (const [at, { revision }] of found.entries()) {
      const write = writes[at];
      if (write !== undefined) recent.acknowledged(write, revision);
    }
    return found;
  }

  /** The server returns one position for all streams. Those of the single events are read if that is possible. */
  async function sequencesOf(
    { stream, rows }: MergedWrite,
    revision: number,
  ): Promise<ReadonlyMap<number, number> | undefined> {
    try {
      const records = await reader.recordsFrom(stream, revision - rows.length + 1, rows.length);
      return new Map(records.map(({ row }) => [row.revision, row.sequence]));
    } catch {
      // The append is stored: a failed read must not turn it into a failure.
      return undefined;
    }
  }

  /** The position of a duplicate; 0 if it is unknown, because a failed read must not turn the append into a failure. */
  async function firstSequence({ stream, rows }: StreamWrite): Promise<number> {
    const found = reader.findEvent(stream, rows.at(-1)?.eventId ?? '');
    try {
      return (await withinTime(found, { ms: searchMs, late: () => undefined }))?.sequence ?? 0;
    } catch {
      return 0;
    }
  }

  return async (writes, { signal }) => {
    const [first] = writes;
    if (first === undefined) return [];
    try {
      if (writes.length > 1) return await appendMany(writes, signal);
      return [
        changesStream(first)
          ? await writeChange({ connection, reader, append: appendOne }, first)
          : await appendOne(first, signal),
      ];
    } catch (error) {
      const outcome = outcomeOf(error);
      if (outcome === undefined) throw unavailable(error);
      const stream = streamOf(error);
      const at = writes.findIndex((write) => write.stream === stream);
      return rejectionAt(writes, Math.max(0, at), outcome);
    }
  };
}

interface FoundAppend {
  readonly kind: 'appended' | 'duplicate';
  readonly revision: number;
  readonly sequence: number;
  /** Positions by revision, as far as they are known. */
  readonly sequences?: ReadonlyMap<number, number> | undefined;
}

interface Appended {
  readonly revision: number;
  readonly sequences: ReadonlyMap<number, number> | undefined;
}

type Sent<Result> =
  | { readonly result: Result; readonly before: number }
  | { readonly found: readonly FoundAppend[] };

function asDuplicate(found: FoundAppend): FoundAppend {
  return { ...found, kind: 'duplicate' };
}

/** The outcome of each write, from those of the merged streams. */
function outcomesOf(
  streams: readonly MergedWrite[],
  appendedAt: (at: number) => FoundAppend | undefined,
): readonly WriteOutcome[] {
  const outcomes: WriteOutcome[] = [];
  for (const [at, { parts }] of streams.entries()) {
    const appended = appendedAt(at);
    if (appended === undefined) continue;
    const { kind, sequence, sequences } = appended;
    for (const { index, fromEnd } of parts) {
      const revision = appended.revision - fromEnd;
      outcomes[index] = { kind, revision, sequence: sequences?.get(revision) ?? sequence };
    }
  }
  return outcomes;
}

function bytesOf(writes: readonly StreamWrite[]): number {
  const rows = writes.flatMap((write) => write.rows);
  return rows.reduce((sum, { payload, meta }) => sum + payload.length + meta.length, 0);
}

async function orUnanswered<Result>(answer: Promise<Result>): Promise<Result | 'unanswered'> {
  try {
    return await answer;
  } catch (error) {
    if (isKind(error, 'deadline-exceeded', 'timeout')) return 'unanswered';
    throw error;
  }
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

type Requests = Parameters<Client['multiStreamAppend']>[0];

async function sendAll(
  client: Client,
  requests: Requests,
): Promise<{ readonly position: number; readonly revisions: ReadonlyMap<string, number> }> {
  const { position, responses } = await client.multiStreamAppend(requests);
  return {
    position: Number(position),
    revisions: new Map(responses.map(({ streamName, revision }) => [streamName, Number(revision)])),
  };
}

function toStreamState(expected: ExpectedRevision): 'any' | 'no_stream' | 'stream_exists' | bigint {
  if (expected === 'any') return 'any';
  if (expected === 'none') return 'no_stream';
  return expected === 'exists' ? 'stream_exists' : BigInt(expected);
}
