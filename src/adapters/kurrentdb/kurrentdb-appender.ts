// Appending: what the server decides comes back as outcomes, and what it does not tell, whether the
// same events had been there before, is seen by the mark that every append leaves on its last event.

import { randomUUID } from 'node:crypto';
import { aborted } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StreamWrite, WriteOptions, WriteOutcome } from '../../store/store-engine.ts';
import { toClientEvent } from './event-record.ts';
import type { Client, ClientEvent } from './kurrentdb-client.ts';
import type { KurrentdbConnection } from './kurrentdb-connection.ts';
import { actualRevisionOf, isKind, streamOf, unavailable } from './kurrentdb-error.ts';
import type { KurrentdbReader } from './kurrentdb-reader.ts';
import { mergeWrites } from './merge-writes.ts';
import { changesStream, metadataOf, writeChange } from './stream-changes.ts';

export interface AppenderParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  /** Told of every append that was acknowledged. */
  readonly onAppended: () => void;
}

export type KurrentdbWrite = (
  writes: readonly StreamWrite[],
  options: WriteOptions,
) => Promise<readonly WriteOutcome[]>;

export function createKurrentdbAppender(parts: AppenderParts): KurrentdbWrite {
  const { connection, reader, onAppended } = parts;
  /** The highest position that was known to be taken; what comes at or below it is not new. */
  let taken = 0;

  async function appendOne(
    { stream, expected, rows, retention }: StreamWrite,
    signal: AbortSignal | undefined,
  ): Promise<WriteOutcome> {
    const mark = randomUUID();
    const data = retention === undefined ? {} : { data: await metadataOf(reader, rows, retention) };
    const events = rows.map((row, index) =>
      toClientEvent(stream, row, index === rows.length - 1 ? { mark, ...data } : {}),
    );
    const takenBefore = taken;
    const result = await connection.use(
      (client) => client.appendToStream(stream, events, { streamState: toStreamState(expected) }),
      signal,
    );
    const revision = Number(result.nextExpectedRevision);
    const sequence = Number(result.position?.commit ?? 0n);
    taken = Math.max(taken, sequence);
    onAppended();
    if (sequence === 0) return earlier(stream, revision);
    if (sequence <= takenBefore) return { kind: 'repeated', revision, sequence };
    const stored = await reader.eventAt(sequence);
    return { kind: stored?.mark === mark ? 'appended' : 'repeated', revision, sequence };
  }

  /** Some servers give no position for events that they have already. */
  async function earlier(stream: string, revision: number): Promise<WriteOutcome> {
    const at = { stream, direction: 'backwards', from: revision, limit: 1, nowMs: 0 } as const;
    const { rows } = await reader.readStream(at);
    return { kind: 'repeated', revision, sequence: rows[0]?.sequence ?? 0 };
  }

  async function appendMany(
    writes: readonly StreamWrite[],
    signal: AbortSignal | undefined,
  ): Promise<readonly WriteOutcome[]> {
    const merged = await mergeWrites(writes, reader);
    if (merged.kind === 'refused') return refuse(writes, merged.index, merged.outcome);
    const marks = merged.streams.map(() => randomUUID());
    const requests = merged.streams.map(({ stream, expected, rows }, index) => ({
      streamName: stream,
      expectedState: toStreamState(expected),
      events: rows.map((row, at): ClientEvent => {
        const isLast = at === rows.length - 1;
        const mark = isLast ? marks[index] : undefined;
        return toClientEvent(stream, row, {
          textsOnly: true,
          ...(mark === undefined ? {} : { mark }),
        });
      }),
    }));
    const response = await connection.use((client) => sendAll(client, requests), signal);
    onAppended();
    const outcomes: WriteOutcome[] = [];
    for (const [index, each] of merged.streams.entries()) {
      const last = Number(response.revisions.get(each.stream) ?? 0n);
      const { length } = each.rows;
      const stored = await reader.recordsFrom(each.stream, last - length + 1, length);
      const kind = stored.at(-1)?.mark === marks[index] ? 'appended' : 'repeated';
      for (const part of each.parts) {
        const revision = last - part.fromEnd;
        const record = stored.find(({ row }) => row.revision === revision);
        // Hidden right away by the stream's retention: then only the whole append's place is known.
        const sequence = record?.row.sequence ?? response.position;
        outcomes[part.index] = { kind, revision, sequence };
      }
    }
    return outcomes;
  }

  return async (writes, { signal, transaction }) => {
    if (transaction !== undefined) {
      throw new MillraceError('NOT_SUPPORTED', 'KurrentDB has no transactions of the caller’s', {
        details: { capability: 'callerTransaction' },
      });
    }
    if (signal?.aborted === true) throw aborted(signal);
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
      return refuse(writes, Math.max(0, at), outcome);
    }
  };
}

function outcomeOf(error: unknown): WriteOutcome | undefined {
  if (isKind(error, 'wrong-expected-version')) {
    return { kind: 'conflict', actual: actualRevisionOf(error) };
  }
  return isKind(error, 'stream-deleted', 'stream-tombstoned') ? { kind: 'deleted' } : undefined;
}

/** One refusal is all there is to tell: nothing was written. */
function refuse(
  writes: readonly StreamWrite[],
  at: number,
  refusal: WriteOutcome,
): readonly WriteOutcome[] {
  return writes.map((_write, index) =>
    index === at ? refusal : { kind: 'repeated', revision: -1, sequence: 0 },
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
