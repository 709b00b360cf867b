// Changes of a whole stream: metadata, deletion and tombstone.

import {
  softDeleted,
  type ExpectedRevision,
  type StreamState,
} from '../../store/expected-revision.ts';
import type { StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
import type { KurrentdbConnection } from './connection.ts';
import { isKind } from './errors.ts';
import type { KurrentdbReader } from './reader.ts';

export interface SentWrite extends Pick<StreamWrite, 'stream' | 'expected' | 'rows'> {
  /** Replaces the payload of the row. */
  readonly data?: unknown;
}

export interface ChangeParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  readonly append: (write: SentWrite) => Promise<WriteOutcome>;
}

/** The most lost races of a change with other writers of the stream. */
const attemptsMax = 20;
const done: WriteOutcome = { kind: 'appended', revision: -1, sequence: 0 };

export async function writeChange(parts: ChangeParts, write: StreamWrite): Promise<WriteOutcome> {
  const { retention } = write;
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (retention === undefined) return await entomb(parts, write);
      const isDeletion = retention.values.truncateBefore === softDeleted;
      const { of, expected = isDeletion ? 'any' : undefined } = retention;
      return expected === undefined
        ? await setMetadata(parts, write, of)
        : await remove(parts, write, { of, expected });
    } catch (error) {
      if (!isKind(error, 'wrong-expected-version') || attempt === attemptsMax) throw error;
    }
  }
}

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

async function setMetadata(
  { reader, append }: ChangeParts,
  write: StreamWrite,
  of: string,
): Promise<WriteOutcome> {
  const state = await reader.streamState(of);
  // The server does not check that.
  if (state?.tombstoned === true) return { kind: 'deleted' };
  // New metadata restores a deleted stream, but not its deleted events.
  const hidden = state?.truncateBefore === softDeleted ? { $tb: state.revision + 1 } : {};
  return append({ ...write, data: { ...payloadOf(write), ...hidden } });
}

/**
 * Metadata that truncates the whole stream has the effect of the server's deletion and keeps other members. The
 * server restores a deleted stream when its metadata is written, so a deleted stream is left as it is.
 */
async function remove(
  { connection, reader, append }: ChangeParts,
  write: StreamWrite,
  { of, expected }: { readonly of: string; readonly expected: ExpectedRevision },
): Promise<WriteOutcome> {
  // Read the revision of the metadata first: a concurrent deletion then makes the append below conflict.
  const metadata = await reader.newest(write.stream);
  const state = await reader.streamState(of);
  const rejection = rejectionOf(state, expected);
  if (rejection !== undefined) return rejection;
  if (state?.truncateBefore === softDeleted) return done;
  const payload = payloadOf(write);
  const hasOthers = Object.keys(payload).length > 1;
  if (expected === 'any' || hasOthers || state === undefined || state.revision === -1) {
    const data = { ...payload, $tb: everything };
    return append({ ...write, expected: metadata?.revision ?? 'none', data });
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

function payloadOf({ rows }: StreamWrite): Record<string, unknown> {
  return JSON.parse(rows.at(-1)?.payload ?? '{}') as Record<string, unknown>;
}

function rawJson(text: string): unknown {
  return (JSON as unknown as { rawJSON(json: string): unknown }).rawJSON(text);
}
