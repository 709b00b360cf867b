// Merges several writes to one stream, because a multi-stream append of the server contains every stream once. The
// expected revisions of later writes are checked here.

import type { StreamState } from '../../store/expected-revision.ts';
import type { StreamWrite, WriteOutcome } from '../../store/store-engine.ts';

export interface MergedWrite extends Pick<StreamWrite, 'stream' | 'expected' | 'rows'> {
  /** The merged writes: their indexes, and the number of events up to the last event of each. */
  readonly parts: readonly { readonly index: number; readonly end: number }[];
}

export type Merged =
  | { readonly kind: 'merged'; readonly streams: readonly MergedWrite[] }
  | { readonly kind: 'rejected'; readonly index: number; readonly outcome: WriteOutcome };

export async function mergeWrites(
  writes: readonly StreamWrite[],
  states: { streamState(stream: string): Promise<StreamState | undefined> },
): Promise<Merged> {
  const streams = new Map<string, MergedWrite>();
  for (const [index, { stream, expected, rows }] of writes.entries()) {
    const first = streams.get(stream) ?? { stream, expected, rows: [], parts: [] };
    let pinned = first.expected;
    if (first.parts.length > 0 && expected !== 'any' && expected !== 'exists') {
      const before = (await states.streamState(stream))?.revision ?? -1;
      const actual = before + first.rows.length;
      if (expected !== actual) {
        return { kind: 'rejected', index, outcome: { kind: 'conflict', actual } };
      }
      // The checked revision must still be current on the server.
      if (pinned === 'any' || pinned === 'exists') pinned = before === -1 ? 'none' : before;
    }
    const merged = [...first.rows, ...rows];
    const parts = [...first.parts, { index, end: merged.length }];
    streams.set(stream, { stream, expected: pinned, rows: merged, parts });
  }
  return { kind: 'merged', streams: [...streams.values()] };
}
