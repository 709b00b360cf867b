// Counts messages, and their rate over the last ten minutes: one sample of the total per minute.

import type { Clock } from '../foundation/clock.ts';

export interface MessageRate {
  count(): void;
  readonly total: number;
  /** 0 during the first minute. */
  perSecond(): number;
}

const sampleMs = 60_000;
const samplesMax = 10;

export function createMessageRate(clock: Clock): MessageRate {
  let total = 0;
  let samples = [0];
  let sampledAtMs = clock.now();

  /** The total changes in `count` only, so missed samples are known afterwards and need no timer. */
  function sample(): void {
    const missed = Math.floor((clock.now() - sampledAtMs) / sampleMs);
    if (missed < 1) return;
    sampledAtMs += missed * sampleMs;
    const added = Array.from({ length: Math.min(missed, samplesMax) }, () => total);
    samples = [...samples, ...added].slice(-samplesMax);
  }

  return {
    count() {
      sample();
      total += 1;
    },
    get total() {
      return total;
    },
    perSecond() {
      sample();
      const intervals = samples.length - 1;
      if (intervals === 0) return 0;
      return ((samples.at(-1) ?? 0) - (samples[0] ?? 0)) / ((intervals * sampleMs) / 1_000);
    },
  };
}
