// Appends events and converts responses of the server to outcomes. The server does not report duplicates: they are
// recognized by the mark on the last event of every append.

import { randomUUID } from 'node:crypto';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StreamWrite, WriteOptions, WriteOutcome } from '../../store/store-engine.ts';
import { toClientEvent } from './event-record.ts';
import type { Client, ClientEvent } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { actualRevisionOf, isKind, streamOf, unavailable } from './errors.ts';
import type { KurrentdbReader } from './reader.ts';
import { mergeWrites } from './merge-writes.ts';
import { changesStream, metadataOf, writeChange } from './stream-changes.ts';

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

export function createKurrentdbAppender(parts: AppenderParts): KurrentdbWrite {
  const { connection, reader, onAppended } = parts;
  /** The highest known position; an append at or below it is a duplicate. */
  let highest = 0;

  async function appendOne(
    { stream, expected, rows, retention }: StreamWrite,
    signal: AbortSignal | undefined,
  ): Promise<WriteOutcome> {
    const mark = randomUUID();
    const data = retention === undefined ? {} : { data: await metadataOf(reader, rows, retention) };
    const events = rows.map((row, index) =>
      toClientEvent(stream, row, index === rows.length - 1 ? { mark, ...data } : {}),
    );
    const highestBefore = highest;
    const result = await connection.use(
      (client) => client.appendToStream(stream, events, { streamState: toStreamState(expected) }),
      signal,
    );
    const revision = Number(result.nextExpectedRevision);
    const sequence = Number(result.position?.commit ?? 0n);
    highest = Math.max(highest, sequence);
    onAppended();
    if (sequence === 0) return duplicateAt(stream, revision);
    if (sequence <= highestBefore) return { kind: 'duplicate', revision, sequence };
    const stored = await reader.eventAt(sequence);
    return { kind: stored?.mark === mark ? 'appended' : 'duplicate', revision, sequence };
  }

  /** Reads the position of a duplicate, because some servers do not return it. */
  async function duplicateAt(stream: string, revision: number): Promise<WriteOutcome> {
    const at = { from: revision, limit: 1, bytesMax: 1, nowMs: 0 } as const;
    const { rows } = await reader.readStream({ ...at, stream, direction: 'backwards' });
    return { kind: 'duplicate', revision, sequence: rows[0]?.sequence ?? 0 };
  }

  async function appendMany(
    writes: readonly StreamWrite[],
    signal: AbortSignal | undefined,
  ): Promise<readonly WriteOutcome[]> {
    const merged = await mergeWrites(writes, reader);
    if (merged.kind === 'rejected') return rejectionAt(writes, merged.index, merged.outcome);
    const marks = merged.streams.map(() => randomUUID());
    const requests = merged.streams.map(({ stream, expected, rows }, index) => ({
      streamName: stream,
      expectedState: toStreamState(expected),
      events: rows.map((row, at): ClientEvent => {
        const isLast = at === rows.length - 1;
        const mark = isLast ? marks[index] : undefined;
        return toClientEvent(stream, row, { textsOnly: true, mark });
      }),
    }));
    const response = await connection.use((client) => sendAll(client, requests), signal);
    onAppended();
    const outcomes: WriteOutcome[] = [];
    for (const [index, { stream, rows, parts: writeParts }] of merged.streams.entries()) {
      const last = Number(response.revisions.get(stream) ?? 0n);
      const { length } = rows;
      const stored = await reader.recordsFrom(stream, last - length + 1, length);
      const kind = stored.at(-1)?.mark === marks[index] ? 'appended' : 'duplicate';
      for (const { index: writeIndex, fromEnd } of writeParts) {
        const revision = last - fromEnd;
        const record = stored.find(({ row }) => row.revision === revision);
        // If retention hides the event already, only the position of the whole append is known.
        const sequence = record?.row.sequence ?? response.position;
        outcomes[writeIndex] = { kind, revision, sequence };
      }
    }
    return outcomes;
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
): Promise<{ readonly position: number; readonly revisions: ReadonlyMap<string, bigint> }> {
  const { position, responses } = await client.multiStreamAppend(requests);
  return {
    position: Number(position),
    revisions: new Map(responses.map(({ streamName, revision }) => [streamName, revision])),
  };
}

function toStreamState(expected: ExpectedRevision): 'any' | 'no_stream' | 'stream_exists' | bigint {
  if (expected === 'any') return 'any';
  if (expected === 'none') return 'no_stream';
  return expected === 'exists' ? 'stream_exists' : BigInt(expected);
}
