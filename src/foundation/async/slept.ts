import type { Clock } from '../clock.ts';

/** Sleeps without an error. Returns false if the signal fired first. */
export function slept(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  return clock.sleep(Math.max(0, ms), signal).then(
    () => true,
    () => false,
  );
}
