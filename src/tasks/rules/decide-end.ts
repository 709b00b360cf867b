// How a job comes to its end, as pure decisions: completed, failed after its attempts, cancelled, lost; and undone
// before that where it has compensations.

import {
  letGo,
  noted,
  told,
  waitAfter,
  type DecideContext,
  type Decision,
} from './task-decision.ts';
import { isTerminal, neverMs, type StoredTask, type TaskHead } from '../task-job.ts';
import {
  infoOf,
  runOf,
  stepOf,
  stepsOf,
  type TaskFailure,
  type TaskRun,
  type TaskWait,
} from '../task-record.ts';

export function decideComplete(
  task: StoredTask,
  result: unknown,
  context: DecideContext,
): Decision {
  const { waitsFor: _waitsFor, error: _error, ...rest } = runOf(task);
  const run = { ...rest, ...(result === undefined ? {} : { result }) };
  return ended(task, run, { state: 'completed', what: 'completed' }, context);
}

/**
 * An attempt failed: again after a while, or the end, which is after its compensations where it has some.
 */
export function decideFailure(
  task: StoredTask,
  failure: TaskFailure,
  context: DecideContext & {
    readonly what?: string | undefined;
    readonly retryAfterMs?: number | undefined;
  },
): Decision {
  const { nowMs, type, signals, what = 'failed' } = context;
  const failures = task.head.failures + 1;
  const isOver = failure.isTerminal === true || failures > type.retries;
  if (isOver) return decideEnding(task, { state: 'failed', error: failure }, { ...context, what });
  const untilMs =
    nowMs + (context.retryAfterMs ?? waitAfter(type.backoff, failures, context.random));
  const run = noted(task, nowMs, { what, worker: task.head.worker, text: failure.message });
  const wait: TaskWait = { kind: 'retry', untilMs };
  return {
    head: { ...letGo, state: 'waiting', dueAtMs: untilMs, failures },
    fields: { run: JSON.stringify({ ...run, error: failure, waitsFor: wait }) },
    signals: [
      told(task, signals, { kind: 'attempt-failed', attempt: failures, error: failure.message }),
    ],
  };
}

/** It is not to complete: what was done is undone first, by a worker; then it ends. */
export function decideEnding(
  task: StoredTask,
  ending: NonNullable<TaskRun['ending']>,
  context: DecideContext & { readonly what?: string | undefined },
): Decision {
  const { nowMs, what = ending.state } = context;
  const { waitsFor: _waitsFor, ...run } = runOf(task);
  const failures = task.head.failures + (ending.state === 'failed' ? 1 : 0);
  if (run.ending !== undefined) {
    // The undoing itself came to an end that is none: what the job was to end as, it is.
    const error = { ...ending.error, message: `compensation failed: ${ending.error.message}` };
    const decision = ended(task, { ...run, error }, { state: 'failed', what }, context);
    return { ...decision, head: { ...decision.head, failures } };
  }
  if (!isCompensable(task)) {
    const decision = ended(
      task,
      { ...run, error: ending.error },
      { state: ending.state, what },
      context,
    );
    return { ...decision, head: { ...decision.head, failures } };
  }
  const next = noted(task, nowMs, { what: 'compensating', text: ending.error.message });
  const { waitsFor: _none, ...kept } = next;
  const head = { ...letGo, state: 'queued' as const, dueAtMs: nowMs, failures: 0, cancelAtMs: 0 };
  return {
    head,
    fields: { run: JSON.stringify({ ...kept, error: ending.error, ending }) },
    signals: [context.signals.queued({ ...task.head, ...head }, infoOf(task))],
  };
}

/** All compensations have run. */
export function decideCompensated(task: StoredTask, context: DecideContext): Decision {
  const { ending, waitsFor: _waitsFor, ...run } = runOf(task);
  const { state, error } = ending ?? { state: 'failed' as const, error: { message: 'failed' } };
  return ended(task, { ...run, error }, { state, what: `${state}, compensated` }, context);
}

/** Undefined: it has ended already, or is being undone. */
export function decideCancel(
  task: StoredTask,
  cancel: { readonly reason: string; readonly deadlineMs: number },
  context: DecideContext,
): Decision | undefined {
  const { head } = task;
  const run = runOf(task);
  if (isTerminal(head.state) || run.ending !== undefined) return undefined;
  if (head.state !== 'running') {
    const error = { message: cancel.reason, code: 'TASK_CANCELLED' };
    return decideEnding(task, { state: 'cancelled', error }, context);
  }
  // Its worker is told, and ends it; from the deadline on the sweeper does. `run` is the worker's to write.
  return head.cancelAtMs === 0
    ? { head: { cancelAtMs: context.nowMs + cancel.deadlineMs }, fields: {}, signals: [] }
    : undefined;
}

/** The sweeper's: its worker is gone, its step hung, or its cancel was not heard. */
export function decideLost(
  task: StoredTask,
  cause: 'worker' | 'deadline' | 'cancel',
  context: DecideContext,
): Decision {
  const { type } = context;
  if (cause === 'cancel' && runOf(task).ending === undefined) {
    const error = { message: 'cancelled', code: 'TASK_CANCELLED' };
    return decideEnding(task, { state: 'cancelled', error }, context);
  }
  const message =
    cause === 'deadline'
      ? `a step took longer than it may, with ${task.head.worker}`
      : `its worker is gone: ${task.head.worker}`;
  const failure = {
    message,
    code: cause === 'deadline' ? 'TASK_STEP_TIMEOUT' : 'TASK_WORKER_LOST',
    ...(type.onLost === 'fail' ? { isTerminal: true } : {}),
  };
  // It was given up without a word: nothing is gained by waiting.
  const what = cause === 'deadline' ? 'timed out' : 'lost';
  return decideFailure(task, failure, { ...context, what, retryAfterMs: 0 });
}

/** Steps whose work is to be undone, the last one first. */
function compensations(task: StoredTask): readonly string[] {
  return stepsOf(task)
    .filter(
      ([name, step]) =>
        step.isCompensable === true &&
        step.state === 'completed' &&
        stepOf(task, undoName(name))?.state !== 'completed',
    )
    .map(([name]) => name)
    .toReversed();
}

export const undoName = (step: string): string => `undo:${step}`;

function isCompensable(task: StoredTask): boolean {
  return compensations(task).length > 0;
}

function ended(
  task: StoredTask,
  run: TaskRun,
  { state, what }: { readonly state: 'completed' | 'failed' | 'cancelled'; readonly what: string },
  { nowMs, signals }: DecideContext,
): Decision {
  const head = { ...letGo, state, dueAtMs: neverMs, cancelAtMs: 0, endedAtMs: nowMs };
  const last = noted(task, nowMs, { what, text: run.error?.message }, run);
  const after: TaskHead = { ...task.head, ...head };
  const { parentId } = task.head;
  return {
    head,
    fields: { run: JSON.stringify(last) },
    signals: [
      signals.ended(after, infoOf(task), { error: run.error?.message }),
      // For the orchestrator, who advances the job that waits for it.
      ...(parentId === '' ? [] : [told(task, signals, { kind: 'ended', state, parentId })]),
    ],
  };
}
