// What the streams should have been told: for the sweeper, who tells again what a stream has lost.

import type { DecideContext } from './task-decision.ts';
import { isTerminal, type StoredTask } from './task-job.ts';
import { infoOf, runOf, stepsOf } from './task-record.ts';
import type { TaskSignal } from './task-signal.ts';

/**
 * What the streams should have been told of a job as it is: for those that were lost. Steps of jobs that
 * have ended are over.
 */
export function expectedSignals(
  task: StoredTask,
  { signals, nowMs }: Pick<DecideContext, 'signals' | 'nowMs'>,
): readonly TaskSignal[] {
  const { head } = task;
  const info = infoOf(task);
  if (isTerminal(head.state)) {
    return [signals.ended(head, info, { error: runOf(task).error?.message })];
  }
  const isQueued = head.state === 'queued' || (head.state === 'scheduled' && head.dueAtMs <= nowMs);
  const steps = stepsOf(task).flatMap(([step, { kind, state, fence, attempts, error }]) => {
    if (state === 'running' || kind === 'sleep') return [];
    const what = { kind: `step-${state}`, step, attempt: attempts };
    const all = error === undefined ? what : { ...what, error: error.message };
    return [signals.progressed({ ...head, fence: fence ?? head.fence }, info, all)];
  });
  return isQueued ? [signals.queued(head, info), ...steps] : steps;
}
