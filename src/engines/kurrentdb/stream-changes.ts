// Changes of a whole stream: metadata, deletion and tombstone.

import { softDeleted } from '../../store/expected-revision.ts';
import { decideRetention } from '../../store/retention.ts';
import type { RetentionChange, StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
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
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await (write.retention === undefined
        ? entomb(parts, write)
        : retain(parts, write, write.retention));
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
  const decision = decideRetention(state, { of: stream, values: {}, expected });
  if (decision.kind !== 'retain') return decision;
  const expectedRevision = expected === 'any' ? 'any' : exactly(state?.revision ?? -1);
  await connection.use((client) => client.tombstoneStream(stream, { expectedRevision }));
  return done;
}

/** New metadata or a deletion. The server checks neither tombstones nor deletions before it writes metadata. */
async function retain(
  { connection, reader, append }: ChangeParts,
  write: StreamWrite,
  change: RetentionChange,
): Promise<WriteOutcome> {
  const { of, values, expected = 'any' } = change;
  // Read the revision of the metadata first: a concurrent deletion then makes the append below conflict.
  const metadata = await reader.newest(write.stream);
  const state = await reader.streamState(of);
  const decision = decideRetention(state, change);
  if (decision.kind !== 'retain') return decision;
  const isDeleted = state?.truncateBefore === softDeleted;
  const payload = JSON.parse(write.rows.at(-1)?.payload ?? '{}') as Record<string, unknown>;
  if (values.truncateBefore !== softDeleted) {
    // New metadata restores a deleted stream, but not its deleted events.
    const hidden = isDeleted ? { $tb: decision.truncateBefore } : {};
    return append({ ...write, data: { ...payload, ...hidden } });
  }
  // The server restores a deleted stream when its metadata is written.
  if (isDeleted) return done;
  const hasOthers = Object.keys(payload).length > 1;
  if (expected === 'any' || hasOthers || state === undefined || state.revision === -1) {
    // Metadata that truncates the whole stream has the effect of the server's deletion and keeps other members.
    const data = { ...payload, $tb: everything };
    return append({ ...write, expected: metadata?.revision ?? 'none', data });
  }
  // Only the server's deletion checks the revision and deletes in one step.
  const expectedRevision = exactly(state.revision);
  await connection.use((client) => client.deleteStream(of, { expectedRevision }));
  return done;
}

function exactly(revision: number): 'no_stream' | bigint {
  return revision === -1 ? 'no_stream' : BigInt(revision);
}

/** For the server, 2^63 − 1 means all events. JavaScript numbers cannot represent this value. */
const everything = rawJson('9223372036854775807');

function rawJson(text: string): unknown {
  return (JSON as unknown as { rawJSON(json: string): unknown }).rawJSON(text);
}
