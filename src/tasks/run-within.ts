// A step's work within its time: it is told to stop, and not waited for any longer.

import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { StepScope } from './task-definition.ts';

export interface WithinOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly heartbeatMs: number | undefined;
  readonly name: string;
  /** Whoever tells progress beats for the step, too. */
  readonly onBeat: (beat: () => void) => void;
}

export async function runWithin<Result>(
  run: (scope: StepScope) => Result | Promise<Result>,
  { clock, signal, timeoutMs, heartbeatMs, name, onBeat }: WithinOptions,
): Promise<Result> {
  const over = new AbortController();
  const tooLate = new AbortController();
  const endMs = clock.now() + timeoutMs;
  let beatMs = clock.now();
  const beat = (): void => void (beatMs = clock.now());
  onBeat(beat);

  async function watch(): Promise<never> {
    for (;;) {
      const aliveMs = heartbeatMs === undefined ? endMs : Math.min(endMs, beatMs + heartbeatMs);
      const leftMs = aliveMs - clock.now();
      if (leftMs <= 0) break;
      await clock.sleep(Math.min(leftMs, 2_147_483_647), over.signal);
    }
    const error = new MillraceError('TASK_STEP_TIMEOUT', `step ${name} took longer than it may`, {
      details: { name, timeoutMs, heartbeatMs },
    });
    tooLate.abort(error);
    throw error;
  }

  const stopped = Promise.withResolvers<never>();
  const onStop = (): void => stopped.reject(signal.reason);
  signal.addEventListener('abort', onStop, { once: true });
  const watching = watch();
  watching.catch(() => undefined);
  stopped.promise.catch(() => undefined);
  try {
    const scope = { signal: AbortSignal.any([signal, tooLate.signal]), beat };
    return await Promise.race([run(scope), watching, stopped.promise]);
  } finally {
    over.abort();
    signal.removeEventListener('abort', onStop);
  }
}
