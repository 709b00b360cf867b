// Reproducible randomness: the seed determines all values.

export interface SeededRandom {
  /** Returns a number in [0, 1). */
  next(): number;
  /** Returns an integer in [0, below). */
  below(below: number): number;
  pick<T>(items: readonly T[]): T;
}

/**
 * A small, fast, seeded generator (not for secrets).
 *
 * @example
 * import { seededRandom } from 'millrace/testing';
 *
 * const random = seededRandom(42);
 * console.log(random.pick(['kill', 'pause', 'wait']));
 */
export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  // Weyl sequence through an integer mixer: every seed has the full period of 2^32.
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new RangeError('pick needs a list with at least one item');
      return item;
    },
  };
}
