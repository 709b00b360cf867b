// A sorted list of hundreds of thousands of values, in chunks with binary search: an insert moves a few hundred values,
// not all.

export interface SortedList<T> {
  readonly size: number;
  add(value: T): void;
  /** Removes the value that compares as equal; returns false if the list has none. */
  remove(value: T): boolean;
  clear(): void;
  ascending(): IterableIterator<T>;
  /** Iterates from the largest value; with a bound, only over the values before it. */
  descending(before?: T): IterableIterator<T>;
}

const chunkMax = 512;

export function createSortedList<T>(compare: (a: T, b: T) => number): SortedList<T> {
  const chunks: T[][] = [];
  let size = 0;

  /** The first chunk whose last value is not less than the value. */
  function chunkOf(value: T): number {
    let low = 0;
    let high = chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const last = chunks[middle]?.at(-1) as T;
      if (compare(last, value) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The position of the first value in the chunk that is not less than the value. */
  function positionIn(chunk: readonly T[], value: T): number {
    let low = 0;
    let high = chunk.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(chunk[middle] as T, value) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    get size() {
      return size;
    },
    add(value) {
      size += 1;
      const at = Math.min(chunkOf(value), chunks.length - 1);
      const chunk = chunks[at];
      if (chunk === undefined) {
        chunks.push([value]);
        return;
      }
      chunk.splice(positionIn(chunk, value), 0, value);
      // Values usually arrive in order, so the last chunk stays full instead of being split in halves.
      if (chunk.length > chunkMax) {
        const isLast = at === chunks.length - 1;
        chunks.splice(at + 1, 0, chunk.splice(isLast ? chunkMax : chunkMax / 2));
      }
    },
    remove(value) {
      const at = chunkOf(value);
      const chunk = chunks[at];
      if (chunk === undefined) return false;
      const index = positionIn(chunk, value);
      const found = chunk[index];
      if (found === undefined || compare(found, value) !== 0) return false;
      chunk.splice(index, 1);
      if (chunk.length === 0) chunks.splice(at, 1);
      size -= 1;
      return true;
    },
    clear() {
      chunks.length = 0;
      size = 0;
    },
    *ascending() {
      for (const chunk of chunks) yield* chunk;
    },
    *descending(before) {
      const from = before === undefined ? chunks.length - 1 : chunkOf(before);
      for (let at = Math.min(from, chunks.length - 1); at >= 0; at -= 1) {
        const chunk = chunks[at] ?? [];
        const end = before === undefined ? chunk.length : positionIn(chunk, before);
        for (let index = end - 1; index >= 0; index -= 1) yield chunk[index] as T;
      }
    },
  };
}
