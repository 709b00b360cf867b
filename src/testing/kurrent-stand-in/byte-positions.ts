// The positions that clients see. The server counts records densely; on the wire a record has the byte offset that it
// would have in the log of EventStoreDB.

import { seededRandom } from '../seeded-random.ts';

/** Where a position of a client is in the log. */
interface Located {
  /** The last record at or before the position; 0: none. */
  readonly sequence: number;
  /** Whether a record starts there, or started there before a scavenge. */
  readonly isRecord: boolean;
}

export interface BytePositions {
  ofSequence(sequence: number): number;
  /** In a log with this many records; a position after all of them is the last record. */
  locate(position: number, head: number): Located;
}

/** Before the first record; a log that starts here shows arithmetic on positions that works with small numbers only. */
const firstPosition = 5_368_709_120;
const gap = { min: 100, max: 2_000 } as const;

/** Every call returns the same positions, so nodes and restarts agree. */
export function createBytePositions(): BytePositions {
  const random = seededRandom(23_10);
  const starts: number[] = [];
  const grow = (length: number): void => {
    while (starts.length < length) {
      const bytes = gap.min + random.below(gap.max - gap.min + 1);
      starts.push((starts.at(-1) ?? firstPosition) + bytes);
    }
  };
  return {
    ofSequence(sequence) {
      if (sequence === 0) return 0;
      grow(sequence);
      return starts[sequence - 1] ?? 0;
    },
    locate(position, head) {
      grow(head + 1);
      if (position >= (starts[head] ?? 0)) return { sequence: head, isRecord: true };
      let [low, high] = [0, head];
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((starts[middle] ?? 0) <= position) low = middle + 1;
        else high = middle;
      }
      return { sequence: low, isRecord: position === 0 || starts[low - 1] === position };
    },
  };
}

/** Without byte offsets: the sequence is the position, as on our own server. */
export const densePositions: BytePositions = {
  ofSequence: (sequence) => sequence,
  locate: (position, head) => ({ sequence: Math.min(position, head), isRecord: true }),
};
