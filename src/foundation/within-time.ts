// A wait with an end, for work that may never answer: whoever does not heed a signal is not waited for.

import { systemClock, type Clock } from './clock.ts';

/** What the work gives, or, once its time is up, what `late` gives or throws. Leaves no timer behind. */
export async function withinTime<Result, Late>(
  work: Promise<Result>,
  {
    ms,
    late,
    clock = systemClock,
  }: {
    readonly ms: number;
    readonly late: () => Late;
    readonly clock?: Clock;
  },
): Promise<Result | Late> {
  const over = new AbortController();
  const lateness = clock.sleep(ms, over.signal).then(late);
  // Its end by the abort below is no failure of anybody's.
  lateness.catch(() => undefined);
  try {
    return await Promise.race([work, lateness]);
  } finally {
    over.abort();
  }
}
