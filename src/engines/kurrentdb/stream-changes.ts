// Changes of a whole stream: metadata, deletion and tombstone.

import { softDeleted, type ExpectedRevision } from '../../store/expected-revision.ts';
import type {
  RetentionChange,
  RowToWrite,
  StreamWrite,
  WriteOutcome,
} from '../../store/store-engine.ts';
import type { KurrentdbConnection } from './connection.ts';
import { isKind } from './errors.ts';
import type { KurrentdbReader } from './reader.ts';

export interface ChangeParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  readonly append: (write: StreamWrite, signal: undefined) => Promise<WriteOutcome>;
}

/** The most lost races of a deletion that expects an existing stream. */
const attemptsMax = 20;

/** Whether the write is a deletion or a tombstone; new metadata is an ordinary append. */
export function changesStream({ retention, tombstone }: StreamWrite): boolean {
  return tombstone === true || retention?.expected !== undefined;
}

export async function writeChange(parts: ChangeParts, write: StreamWrite): Promise<WriteOutcome> {
  const { connection } = parts;
  const { retention } = write;
  if (retention?.expected === undefined) {
    return ifAsExpected(parts, { stream: write.stream, expected: write.expected }, (expected) =>
      connection.use((client) =>
        client.tombstoneStream(write.stream, { expectedRevision: expected }),
      ),
    );
  }
  // The server's deletion drops all other metadata. Without an expected revision, metadata that truncates the whole
  // stream has the same effect and keeps the rest.
  const withMetadata = (): Promise<WriteOutcome> =>
    parts.append({ ...write, retention: { ...retention, expected: 'any' } }, undefined);
  if (retention.expected === 'any') return withMetadata();
  const deleted = await ifAsExpected(
    parts,
    { stream: retention.of, expected: retention.expected },
    (expected) =>
      connection.use((client) => client.deleteStream(retention.of, { expectedRevision: expected })),
  );
  const isAll = Object.keys(payloadOf(write.rows)).length === 1;
  return deleted.kind === 'appended' && !isAll ? withMetadata() : deleted;
}

type Expected = 'any' | 'no_stream' | bigint;

/** Deletions do not support `exists`: the current revision is read and expected instead. */
async function ifAsExpected(
  { reader }: ChangeParts,
  { stream, expected }: { readonly stream: string; readonly expected: ExpectedRevision },
  work: (expected: Expected) => Promise<unknown>,
): Promise<WriteOutcome> {
  const done: WriteOutcome = { kind: 'appended', revision: -1, sequence: 0 };
  if (expected !== 'exists') {
    await work(expected === 'any' ? 'any' : expected === 'none' ? 'no_stream' : BigInt(expected));
    return done;
  }
  for (let attempt = 1; ; attempt += 1) {
    const state = await reader.streamState(stream);
    if (state === undefined) return { kind: 'conflict', actual: -1 };
    if (state.tombstoned || state.truncateBefore === softDeleted) return { kind: 'deleted' };
    try {
      await work(state.revision === -1 ? 'no_stream' : BigInt(state.revision));
      return done;
    } catch (error) {
      if (!isKind(error, 'wrong-expected-version') || attempt === attemptsMax) throw error;
    }
  }
}

/** For the server, 2^63 − 1 means all events. JavaScript numbers cannot represent this value. */
const everything = rawJson('9223372036854775807');

/** The metadata in the server's format. */
export async function metadataOf(
  reader: KurrentdbReader,
  rows: readonly RowToWrite[],
  { of, values }: RetentionChange,
): Promise<Record<string, unknown>> {
  const payload = payloadOf(rows);
  if (values.truncateBefore === softDeleted) return { ...payload, $tb: everything };
  const state = await reader.streamState(of);
  if (state?.truncateBefore !== softDeleted) return payload;
  // New metadata restores a deleted stream, but not its deleted events.
  return { ...payload, $tb: state.revision + 1 };
}

function payloadOf(rows: readonly RowToWrite[]): Record<string, unknown> {
  return JSON.parse(rows.at(-1)?.payload ?? '{}') as Record<string, unknown>;
}

function rawJson(text: string): unknown {
  return (JSON as unknown as { rawJSON(json: string): unknown }).rawJSON(text);
}
