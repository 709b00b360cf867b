// A multi-stream append names every stream once; ours may come back to one. What is written to it
// together is one write, and what the later parts expect is looked at here.

import type { ExpectedRevision, StreamState } from '../../store/expected-revision.ts';
import type { RowToWrite, StreamWrite, WriteOutcome } from '../../store/store-engine.ts';

interface MergedWrite {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly rows: readonly RowToWrite[];
  /** The writes that it is made of: their places, and how many events follow the last of each. */
  readonly parts: readonly { readonly index: number; readonly fromEnd: number }[];
}

export type Merged =
  | { readonly kind: 'merged'; readonly streams: readonly MergedWrite[] }
  | { readonly kind: 'refused'; readonly index: number; readonly outcome: WriteOutcome };

export async function mergeWrites(
  writes: readonly StreamWrite[],
  states: { streamState(stream: string): Promise<StreamState | undefined> },
): Promise<Merged> {
  const streams: MergedWrite[] = [];
  const placed = writes.map((write, index) => ({ write, index }));
  for (const [stream, parts] of Map.groupBy(placed, ({ write }) => write.stream)) {
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
        return { kind: 'refused', index, outcome: { kind: 'conflict', actual } };
      }
    }
    // What was looked at here must still hold there.
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
