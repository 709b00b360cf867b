// A wait with a time limit, for work that may never finish and may ignore its signal.

import { systemClock, type Clock } from '../clock.ts';

/** The result of the work, or, after `ms`, the result or the error of `late`. Leaves no timer. */
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
  // Rejects when the work ends first and the abort below cancels the sleep.
  lateness.catch(() => undefined);
  try {
    return await Promise.race([work, lateness]);
  } finally {
    over.abort();
  }
}
