// How a job ends, as pure decisions: completed, failed after its attempts, cancelled or lost; with compensations, it is
// undone first.

import {
  released,
  addHistory,
  progressSignal,
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
 * A failed attempt: the job is retried after a delay, or it ends, after its compensations if it has some.
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
  const run = addHistory(task, nowMs, { what, worker: task.head.worker, text: failure.message });
  const wait: TaskWait = { kind: 'retry', untilMs };
  return {
    head: { ...released, state: 'waiting', dueAtMs: untilMs, failures },
    fields: { run: JSON.stringify({ ...run, error: failure, waitsFor: wait }) },
    signals: [
      progressSignal(task, signals, {
        kind: 'attempt-failed',
        attempt: failures,
        error: failure.message,
      }),
    ],
  };
}

/** The job will not complete: a worker first runs its compensations, then it ends. */
export function decideEnding(
  task: StoredTask,
  ending: NonNullable<TaskRun['ending']>,
  context: DecideContext & { readonly what?: string | undefined },
): Decision {
  const { nowMs, what = ending.state } = context;
  const { waitsFor: _waitsFor, ...run } = runOf(task);
  const failures = task.head.failures + (ending.state === 'failed' ? 1 : 0);
  if (run.ending !== undefined) {
    // A compensation failed: the job ends as failed.
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
  const next = addHistory(task, nowMs, { what: 'compensating', text: ending.error.message });
  const { waitsFor: _none, ...kept } = next;
  const head = {
    ...released,
    state: 'queued' as const,
    dueAtMs: nowMs,
    failures: 0,
    cancelAtMs: 0,
  };
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

/** Undefined: it has already ended, or its compensations are running. */
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
  // Its worker is notified and ends it; after the deadline the sweeper does. Only the worker writes `run`.
  return head.cancelAtMs === 0
    ? { head: { cancelAtMs: context.nowMs + cancel.deadlineMs }, fields: {}, signals: [] }
    : undefined;
}

/** Called by the sweeper: the worker is gone, the step hangs, or the worker did not obey the cancellation. */
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
      ? `a step exceeded its time limit, in worker ${task.head.worker}`
      : `worker ${task.head.worker} is gone`;
  const failure = {
    message,
    code: cause === 'deadline' ? 'TASK_STEP_TIMEOUT' : 'TASK_WORKER_LOST',
    ...(type.onLost === 'fail' ? { isTerminal: true } : {}),
  };
  // Waiting longer would not help.
  const what = cause === 'deadline' ? 'timed out' : 'lost';
  return decideFailure(task, failure, { ...context, what, retryAfterMs: 0 });
}

/** Steps to compensate, the last one first. */
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
  const head = { ...released, state, dueAtMs: neverMs, cancelAtMs: 0, endedAtMs: nowMs };
  const last = addHistory(task, nowMs, { what, text: run.error?.message }, run);
  const after: TaskHead = { ...task.head, ...head };
  const { parentId } = task.head;
  return {
    head,
    fields: { run: JSON.stringify(last) },
    signals: [
      signals.ended(after, infoOf(task), { error: run.error?.message }),
      // For the orchestrator, which wakes the parent.
      ...(parentId === ''
        ? []
        : [progressSignal(task, signals, { kind: 'ended', state, parentId })]),
    ],
  };
}
