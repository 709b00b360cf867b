// Values in order, for hundreds of thousands of them: chunks that are searched by halving, so that an
// insert anywhere moves a few hundred and not all.

export interface SortedList<T> {
  readonly size: number;
  add(value: T): void;
  /** The one that is equal by the order; false: there was none. */
  remove(value: T): boolean;
  clear(): void;
  first(): T | undefined;
  ascending(): IterableIterator<T>;
  /** Largest first; only those before the bound, if there is one. */
  descending(before?: T): IterableIterator<T>;
  /** The first that is larger than the bound. */
  firstAfter(bound: T): T | undefined;
}

const chunkMax = 512;

export function createSortedList<T>(compare: (a: T, b: T) => number): SortedList<T> {
  const chunks: T[][] = [];
  let size = 0;

  /** The first chunk that may hold it: its last value is not before it. */
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

  /** In its chunk: the first that is not before it. */
  function placeIn(chunk: readonly T[], value: T): number {
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
      chunk.splice(placeIn(chunk, value), 0, value);
      // Mostly they come in order: then the full one stays full.
      if (chunk.length > chunkMax) {
        const isLast = at === chunks.length - 1;
        chunks.splice(at + 1, 0, chunk.splice(isLast ? chunkMax : chunkMax / 2));
      }
    },
    remove(value) {
      const at = chunkOf(value);
      const chunk = chunks[at];
      if (chunk === undefined) return false;
      const place = placeIn(chunk, value);
      const found = chunk[place];
      if (found === undefined || compare(found, value) !== 0) return false;
      chunk.splice(place, 1);
      if (chunk.length === 0) chunks.splice(at, 1);
      size -= 1;
      return true;
    },
    clear() {
      chunks.length = 0;
      size = 0;
    },
    first: () => chunks[0]?.[0],
    *ascending() {
      for (const chunk of chunks) yield* chunk;
    },
    *descending(before) {
      const from = before === undefined ? chunks.length - 1 : chunkOf(before);
      for (let at = Math.min(from, chunks.length - 1); at >= 0; at -= 1) {
        const chunk = chunks[at] ?? [];
        const end = before === undefined ? chunk.length : placeIn(chunk, before);
        for (let place = end - 1; place >= 0; place -= 1) yield chunk[place] as T;
      }
    },
    firstAfter(bound) {
      for (let at = chunkOf(bound); at < chunks.length; at += 1) {
        const chunk = chunks[at] ?? [];
        for (let place = placeIn(chunk, bound); place < chunk.length; place += 1) {
          if (compare(chunk[place] as T, bound) > 0) return chunk[place];
        }
      }
      return undefined;
    },
  };
}
