// A wait with a time limit, for work that may never end and may ignore its signal.

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
    readonly clock?: Clock | undefined;
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
