// Merges several writes to one stream, because a multi-stream append of the server contains every stream once. The
// expected revisions of later writes are checked here.

import type { ExpectedRevision, StreamState } from '../../store/expected-revision.ts';
import type { RowToWrite, StreamWrite, WriteOutcome } from '../../store/store-engine.ts';

export interface MergedWrite {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly rows: readonly RowToWrite[];
  /** The merged writes: their indexes, and the number of events after the last event of each. */
  readonly parts: readonly { readonly index: number; readonly fromEnd: number }[];
}

export type Merged =
  | { readonly kind: 'merged'; readonly streams: readonly MergedWrite[] }
  | { readonly kind: 'rejected'; readonly index: number; readonly outcome: WriteOutcome };

export async function mergeWrites(
  writes: readonly StreamWrite[],
  states: { streamState(stream: string): Promise<StreamState | undefined> },
): Promise<Merged> {
  const streams: MergedWrite[] = [];
  const indexed = writes.map((write, index) => ({ write, index }));
  for (const [stream, parts] of Map.groupBy(indexed, ({ write }) => write.stream)) {
    const rows = parts.flatMap(({ write }) => write.rows);
    let written = 0;
    const merged: MergedWrite = {
      stream,
      expected: parts[0]?.write.expected ?? 'any',
      rows,
      parts: parts.map(({ write, index }) => {
        written += write.rows.length;
        return { index, fromEnd: rows.length - written };
      }),
    };
    const exact = parts.slice(1).filter(({ write }) => isExact(write.expected));
    if (exact.length === 0) {
      streams.push(merged);
      continue;
    }
    const before = (await states.streamState(stream))?.revision ?? -1;
    for (const { write, index } of exact) {
      const at = merged.parts.find((part) => part.index === index);
      const actual = before + rows.length - (at?.fromEnd ?? 0) - write.rows.length;
      if (write.expected !== actual) {
        return { kind: 'rejected', index, outcome: { kind: 'conflict', actual } };
      }
    }
    // The checked revision must still be current on the server.
    const { expected } = merged;
    const pinned = expected === 'any' || expected === 'exists' ? exactly(before) : expected;
    streams.push({ ...merged, expected: pinned });
  }
  return { kind: 'merged', streams };
}

function isExact(expected: ExpectedRevision): boolean {
  return expected !== 'any' && expected !== 'exists';
}

function exactly(revision: number): ExpectedRevision {
  return revision === -1 ? 'none' : revision;
}
