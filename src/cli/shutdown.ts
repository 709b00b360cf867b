// Stopping in time: requests first, since they may wait for what the rest still does, then the rest.

import { withinTime } from '../foundation/within-time.ts';
import { usage } from './command.ts';
import { durationSeconds } from './option-values.ts';

export const shutdownOption = {
  'shutdown-timeout': {
    type: 'string',
    value: 'duration',
    summary: 'how long what is under way may take once it is told to stop (30s)',
  },
} as const;

export interface ShutdownTimes {
  readonly totalMs: number;
  /** Of requests. */
  readonly requestsMs: number;
  /** Of handlers and sends; what is left is for checkpoints, outcomes and leases. */
  readonly workMs: number;
}

const secondsDefault = 30;

export function shutdownTimes(text: string | undefined): ShutdownTimes {
  const seconds = text === undefined ? secondsDefault : durationSeconds('shutdown-timeout', text);
  if (seconds < 1) throw usage('--shutdown-timeout is at least 1s: a second signal ends at once');
  const totalMs = seconds * 1_000;
  return { totalMs, requestsMs: totalMs * 0.5, workMs: totalMs * 0.4 };
}

/** False: its time was up before it was done. */
export function doneWithin(work: Promise<void>, ms: number): Promise<boolean> {
  return withinTime(
    work.then(() => true),
    { ms, late: () => false },
  );
}
