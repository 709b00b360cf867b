// The time limit of a lane's handler: one timer for many calls, because most calls end long before it.

import { slept } from '../../foundation/async/slept.ts';
import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';

export interface Deadline {
  /** Awaits the work or rejects with `HANDLER_TIMEOUT`. One call at a time. */
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
        const timeOut = (): void => {
          expire = undefined;
          reject(new MillraceError('HANDLER_TIMEOUT', `the handler exceeded ${timeoutMs} ms`));
        };
        expire = timeOut;
        dueMs = clock.now() + timeoutMs;
        if (!isArmed) void arm();
        const finish = (end: () => void): void => {
          if (expire === timeOut) expire = undefined;
          end();
        };
        work.then(
          () => finish(resolve),
          (error: unknown) =>
            finish(() => reject(error instanceof Error ? error : new Error(String(error)))),
        );
      }),
  };
}
