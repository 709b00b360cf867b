// Seeded random values: every run on every machine measures the same inputs.

import { seededRandom, type SeededRandom } from '../src/testing/seeded-random.ts';

export interface Random extends SeededRandom {
  /** Returns true in this share of the calls. */
  chance(share: number): boolean;
  /** Returns a shuffled copy. */
  shuffle<T>(items: readonly T[]): T[];
  /** Returns a string in the format of a UUIDv4. */
  uuid(): string;
}

export function createRandom(seed: number): Random {
  const random = seededRandom(seed);
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => random.below(16).toString(16)).join('');

  return {
    ...random,
    chance: (share) => random.next() < share,
    shuffle: <T>(items: readonly T[]): T[] => {
      const copy = [...items];
      for (let last = copy.length - 1; last > 0; last -= 1) {
        const other = random.below(last + 1);
        [copy[last], copy[other]] = [copy[other] as T, copy[last] as T];
      }
      return copy;
    },
    uuid: () =>
      `${hex(8)}-${hex(4)}-4${hex(3)}-${random.pick(['8', '9', 'a', 'b'])}${hex(3)}-${hex(12)}`,
  };
}
