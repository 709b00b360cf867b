// Changes of a whole stream: metadata, deletion and tombstone.

import {
  softDeleted,
  type ExpectedRevision,
  type StreamState,
} from '../../store/expected-revision.ts';
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

/** The most lost races of a change with other writers of the stream. */
const attemptsMax = 20;

/** Whether the write is a deletion or a tombstone; new metadata is an ordinary append. */
export function changesStream({ retention, tombstone }: StreamWrite): boolean {
  return tombstone === true || retention?.expected !== undefined;
}

export async function writeChange(parts: ChangeParts, write: StreamWrite): Promise<WriteOutcome> {
  const { retention } = write;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return retention?.expected === undefined
        ? await entomb(parts, write)
        : await remove(parts, write, { ...retention, expected: retention.expected });
    } catch (error) {
      if (!isKind(error, 'wrong-expected-version') || attempt === attemptsMax) throw error;
    }
  }
}

const done: WriteOutcome = { kind: 'appended', revision: -1, sequence: 0 };

async function entomb(
  { connection, reader }: ChangeParts,
  { stream, expected }: StreamWrite,
): Promise<WriteOutcome> {
  const state = await reader.streamState(stream);
  const rejection = rejectionOf(state, expected);
  if (rejection !== undefined) return rejection;
  const expectedRevision = expected === 'any' ? 'any' : exactly(state?.revision ?? -1);
  await connection.use((client) => client.tombstoneStream(stream, { expectedRevision }));
  return done;
}

/**
 * Metadata that truncates the whole stream has the effect of the server's deletion and keeps other members. The
 * server restores a deleted stream when its metadata is written, so a deleted stream is left as it is.
 */
async function remove(
  { connection, reader, append }: ChangeParts,
  write: StreamWrite,
  { of, values, expected }: RetentionChange & { readonly expected: ExpectedRevision },
): Promise<WriteOutcome> {
  // Read the revision of the metadata first: a concurrent deletion then makes the append below conflict.
  const metadata = await reader.lastRevision(write.stream);
  const state = await reader.streamState(of);
  const rejection = rejectionOf(state, expected);
  if (rejection !== undefined) return rejection;
  if (state?.truncateBefore === softDeleted) return done;
  const hasOthers = Object.keys(payloadOf(write.rows)).length > 1;
  if (expected === 'any' || hasOthers || state === undefined || state.revision === -1) {
    return append({ ...write, expected: metadata ?? 'none', retention: { of, values } }, undefined);
  }
  // Only the server's deletion checks the revision and deletes in one step.
  const expectedRevision = exactly(state.revision);
  await connection.use((client) => client.deleteStream(of, { expectedRevision }));
  return done;
}

/** Undefined: the stream is as expected. */
function rejectionOf(
  state: StreamState | undefined,
  expected: ExpectedRevision,
): WriteOutcome | undefined {
  if (state?.tombstoned === true) return { kind: 'deleted' };
  const isDeleted = state?.truncateBefore === softDeleted;
  const actual = state?.revision ?? -1;
  if (expected === 'any' || (expected === 'none' && (isDeleted || actual === -1))) return undefined;
  if (expected !== 'exists') return expected === actual ? undefined : { kind: 'conflict', actual };
  if (state === undefined) return { kind: 'conflict', actual: -1 };
  return isDeleted ? { kind: 'deleted' } : undefined;
}

function exactly(revision: number): 'no_stream' | bigint {
  return revision === -1 ? 'no_stream' : BigInt(revision);
}

/** For the server, 2^63 − 1 means all events. JavaScript numbers cannot represent this value. */
const everything = rawJson('9223372036854775807');

/** The metadata in the server's format; undefined if the stream has a tombstone, which the server does not check. */
export async function metadataOf(
  reader: KurrentdbReader,
  rows: readonly RowToWrite[],
  { of, values }: RetentionChange,
): Promise<Record<string, unknown> | undefined> {
  const payload = payloadOf(rows);
  if (values.truncateBefore === softDeleted) return { ...payload, $tb: everything };
  const state = await reader.streamState(of);
  if (state?.tombstoned === true) return undefined;
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
