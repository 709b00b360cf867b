// The time limit of a lane's handler: one timer for many calls, as most of them end long before it.

import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';

export interface Deadline {
  /** One at a time: the work, or `HANDLER_TIMEOUT`. */
  race(work: PromiseLike<unknown>): Promise<void>;
}

export function createDeadline(clock: Clock, timeoutMs: number, signal: AbortSignal): Deadline {
  let expire: (() => void) | undefined;
  let dueMs = 0;
  let isArmed = false;

  async function arm(): Promise<void> {
    isArmed = true;
    let waitMs = timeoutMs;
    while (await slept(clock, waitMs, signal)) {
      if (expire === undefined) break;
      waitMs = dueMs - clock.now();
      if (waitMs <= 0) {
        expire();
        break;
      }
    }
    isArmed = false;
  }

  return {
    race: (work) =>
      new Promise((resolve, reject) => {
        const mine = (): void => {
          expire = undefined;
          reject(new MillraceError('HANDLER_TIMEOUT', `the handler took over ${timeoutMs} ms`));
        };
        expire = mine;
        dueMs = clock.now() + timeoutMs;
        if (!isArmed) void arm();
        const over = (end: () => void): void => {
          if (expire === mine) expire = undefined;
          end();
        };
        work.then(
          () => over(resolve),
          (error: unknown) =>
            over(() => reject(error instanceof Error ? error : new Error(String(error)))),
        );
      }),
  };
}

/** False: the signal came first. */
export function slept(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return clock.sleep(Math.max(0, ms), signal).then(
    () => true,
    () => false,
  );
}
