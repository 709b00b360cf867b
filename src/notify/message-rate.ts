// How many messages there were, and how many a second of late: from one look a minute, ten looks back.

import type { Clock } from '../foundation/clock.ts';

export interface MessageRate {
  count(): void;
  readonly total: number;
  /** 0 until the first minute is over. */
  perSecond(): number;
}

const lookMs = 60_000;
const looksMax = 10;

export function createMessageRate(clock: Clock): MessageRate {
  let total = 0;
  let looks = [0];
  let lookedMs = clock.now();

  /** The total changes in `count` only: what a look would have seen meanwhile is known without a timer. */
  function look(): void {
    const missed = Math.floor((clock.now() - lookedMs) / lookMs);
    if (missed < 1) return;
    lookedMs += missed * lookMs;
    const seen = Array.from({ length: Math.min(missed, looksMax) }, () => total);
    looks = [...looks, ...seen].slice(-looksMax);
  }

  return {
    count() {
      look();
      total += 1;
    },
    get total() {
      return total;
    },
    perSecond() {
      look();
      const over = looks.length - 1;
      if (over === 0) return 0;
      return ((looks.at(-1) ?? 0) - (looks[0] ?? 0)) / ((over * lookMs) / 1_000);
    },
  };
}
