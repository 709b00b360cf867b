// How a job returns to the queue, as pure decisions: retried, woken, due, or released.

import {
  addHistory,
  released,
  toQueue,
  type DecideContext,
  type Decision,
} from './task-decision.ts';
import { isTerminal, type StoredTask } from '../task-job.ts';
import { cancelField, eventField, runOf, stepField, stepsOf } from '../task-record.ts';

/** Undefined: the job has not ended, so it cannot be retried. */
export function decideRetry(
  task: StoredTask,
  { fromStep }: { readonly fromStep?: string | undefined },
  context: DecideContext,
): Decision | undefined {
  const { head } = task;
  const { nowMs } = context;
  if (!isTerminal(head.state)) return undefined;
  const steps = stepsOf(task);
  const from = steps.find(([name]) => name === fromStep)?.[1].at ?? Number.POSITIVE_INFINITY;
  // Compensated and failed steps run again.
  const undone = new Set(
    steps.flatMap(([name]) => (name.startsWith('undo:') ? [name.slice(5)] : [])),
  );
  const dropped = steps.filter(
    ([name, step]) =>
      step.at >= from ||
      step.kind === 'compensation' ||
      undone.has(name) ||
      step.state === 'failed',
  );
  const run = {
    ...addHistory(task, nowMs, {
      what: 'retried',
      text: fromStep === undefined ? undefined : `from ${fromStep}`,
    }),
    result: undefined,
    error: undefined,
    ending: undefined,
    progress: undefined,
  };
  // A new fence, so that the next terminal signal has a new id.
  const next = {
    fence: head.fence + 1,
    dueAtMs: nowMs,
    failures: 0,
    endedAtMs: 0,
    cancelAtMs: 0,
  };
  return toQueue(task, next, context, {
    run: JSON.stringify(run),
    ...(task.fields[cancelField] === undefined ? {} : { [cancelField]: null }),
    ...Object.fromEntries(dropped.map(([name]) => [stepField(name), null])),
  });
}

/** Undefined: the job has ended. */
export function decideEvent(
  task: StoredTask,
  event: { readonly name: string; readonly id: string; readonly payload: unknown },
  context: DecideContext,
): Decision | undefined {
  if (isTerminal(task.head.state)) return undefined;
  const { nowMs } = context;
  const text = JSON.stringify({ payload: event.payload, atMs: nowMs });
  const fields = { [eventField(event.name, event.id)]: text };
  const { waitsFor } = runOf(task);
  const isAwaited =
    task.head.state === 'waiting' && waitsFor?.kind === 'event' && waitsFor.event === event.name;
  if (!isAwaited) return { head: {}, fields, signals: [] };
  const woken = decideWake(task, context);
  return { ...woken, fields: { ...woken.fields, ...fields } };
}

/** The job's wait is over: a worker may continue it now. */
export function decideWake(task: StoredTask, context: DecideContext): Decision {
  return toQueue(task, { dueAtMs: context.nowMs }, context);
}

/** The job is due: publishes its queue signal. A claim does not wait for this. */
export function decideDue(task: StoredTask, context: DecideContext): Decision | undefined {
  return task.head.state === 'scheduled' ? toQueue(task, {}, context) : undefined;
}

/** Returns the job to the queue as before its claim, except for the fence. */
export function decideRelease(task: StoredTask, context: DecideContext): Decision {
  return toQueue(task, { ...released, dueAtMs: context.nowMs }, context);
}
