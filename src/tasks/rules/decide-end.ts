// Pure decisions about the terminal state of a job: completed, failed after its attempts, cancelled or lost. A job
// with compensations runs them first.

import {
  addHistory,
  progressSignal,
  released,
  toQueue,
  waitAfter,
  type DecideContext,
  type Decision,
} from './task-decision.ts';
import { isTerminal, neverMs, type StoredTask } from '../task-job.ts';
import {
  cancelField,
  cancelOf,
  infoOf,
  readTask,
  runOf,
  stepOf,
  stepsOf,
  unrecordedCancel,
  unrecordedClaim,
  withHistory,
  type CancelRecord,
  type TaskFailure,
  type TaskRun,
  type TaskWait,
} from '../task-record.ts';

export function decideComplete(
  task: StoredTask,
  result: unknown,
  context: DecideContext,
): Decision {
  const run = { ...runOf(task), error: undefined, result };
  return ended(task, run, { state: 'completed', what: 'completed' }, context);
}

/**
 * After a failed attempt, the job is retried after a delay, or ends (after its compensations, if it has any).
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

/** The job will not complete: a worker runs its compensations, if any; then the job ends. */
function decideEnding(
  task: StoredTask,
  ending: NonNullable<TaskRun['ending']>,
  context: DecideContext & { readonly what?: string | undefined },
): Decision {
  const { nowMs, what = ending.state } = context;
  const run = runOf(task);
  const { error } = ending;
  const hasFailedCompensation = run.ending !== undefined;
  if (!hasFailedCompensation && hasCompensations(task)) {
    const text = error.message;
    const next = { ...addHistory(task, nowMs, { what: 'compensating', text }), error, ending };
    const head = { ...released, dueAtMs: nowMs, failures: 0, cancelAtMs: 0 };
    return toQueue(task, head, context, { run: JSON.stringify({ ...next, waitsFor: undefined }) });
  }
  const failures = task.head.failures + (ending.state === 'failed' ? 1 : 0);
  const last = hasFailedCompensation
    ? {
        state: 'failed' as const,
        error: { ...error, message: `compensation failed: ${error.message}` },
      }
    : ending;
  const decision = ended(task, { ...run, error: last.error }, { state: last.state, what }, context);
  return { ...decision, head: { ...decision.head, failures } };
}

/** The person that the job is about was forgotten: no handler runs, also no compensation. */
export function decideErased(task: StoredTask, context: DecideContext): Decision {
  const error = { message: 'the person was forgotten', code: 'SUBJECT_FORGOTTEN' };
  return ended(task, { ...runOf(task), error }, { state: 'failed', what: 'failed' }, context);
}

/** A part of the stored job cannot be read: no handler runs, also no compensation. */
export function decideDamaged(
  task: StoredTask,
  error: TaskFailure,
  context: DecideContext,
): Decision {
  return ended(task, { ...runOf(task), error }, { state: 'failed', what: 'failed' }, context);
}

/** All compensations have run. */
export function decideCompensated(task: StoredTask, context: DecideContext): Decision {
  const run = runOf(task);
  const { state, error } = run.ending ?? { state: 'failed', error: { message: 'failed' } };
  const next = { ...run, ending: undefined, error };
  return ended(task, next, { state, what: `${state}, compensated` }, context);
}

/** Undefined: the job has already ended, or its compensations are running. */
export function decideCancel(
  task: StoredTask,
  cancel: { readonly reason: string; readonly deadlineMs: number },
  context: DecideContext,
): Decision | undefined {
  const { head } = task;
  const run = runOf(task);
  if (isTerminal(head.state) || run.ending !== undefined) return undefined;
  const { reason, deadlineMs } = cancel;
  if (head.state !== 'running') return decideCancelled(task, context, reason);
  // The worker is notified and ends the job; after the deadline the sweeper does. Only the worker writes `run`.
  if (head.cancelAtMs !== 0) return undefined;
  const { nowMs } = context;
  const record: CancelRecord = { reason, atMs: nowMs };
  return {
    head: { cancelAtMs: nowMs + deadlineMs },
    fields: { [cancelField]: JSON.stringify(record) },
    signals: [],
  };
}

/** Ends the job as cancelled. Default `reason`: the one in the stored request. */
export function decideCancelled(
  task: StoredTask,
  context: DecideContext,
  reason: string = cancelOf(task)?.reason ?? 'cancelled',
): Decision {
  const error = { message: reason, code: 'TASK_CANCELLED' };
  const requests = unrecordedCancel(task);
  if (requests.length === 0) return decideEnding(task, { state: 'cancelled', error }, context);
  const run = runOf(task);
  const recorded = withHistory(run, ...unrecordedClaim(task, run), ...requests);
  const fields = { ...task.fields, run: JSON.stringify(recorded) };
  const decided = decideEnding({ ...task, fields }, { state: 'cancelled', error }, context);
  return { ...decided, fields: { ...decided.fields, [cancelField]: null } };
}

/** Called by the sweeper: the worker is gone, the step hangs, or the worker did not obey the cancellation. */
export function decideLost(
  task: StoredTask,
  cause: 'worker' | 'deadline' | 'cancel',
  context: DecideContext,
): Decision {
  const { damage } = readTask(task);
  if (damage !== undefined) return decideDamaged(task, damage, context);
  if (cause === 'cancel' && runOf(task).ending === undefined) return decideCancelled(task, context);
  const message =
    cause === 'deadline'
      ? `a step exceeded its time limit, in worker ${task.head.worker}`
      : `worker ${task.head.worker} is gone`;
  const failure = {
    message,
    code: cause === 'deadline' ? 'TASK_STEP_TIMEOUT' : 'TASK_WORKER_LOST',
    isTerminal: context.type.onLost === 'fail' || undefined,
  };
  // A delay would not help: the retry runs in another worker.
  const what = cause === 'deadline' ? 'timed out' : 'lost';
  return decideFailure(task, failure, { ...context, what, retryAfterMs: 0 });
}

/** Whether a completed step has a compensation that has not run. */
function hasCompensations(task: StoredTask): boolean {
  return stepsOf(task).some(
    ([name, step]) =>
      step.isCompensable === true &&
      step.state === 'completed' &&
      stepOf(task, undoName(name))?.state !== 'completed',
  );
}

export const undoName = (step: string): string => `undo:${step}`;

function ended(
  task: StoredTask,
  run: TaskRun,
  { state, what }: { readonly state: 'completed' | 'failed' | 'cancelled'; readonly what: string },
  { nowMs, signals }: DecideContext,
): Decision {
  const head = { ...released, state, dueAtMs: neverMs, cancelAtMs: 0, endedAtMs: nowMs };
  const error = run.error?.message;
  const last = addHistory(task, nowMs, { what, text: error }, run);
  const { parentId } = task.head;
  const published = [signals.ended({ ...task.head, ...head }, infoOf(task), { error })];
  // The orchestrator wakes the parent when it reads this signal.
  if (parentId !== '')
    published.push(progressSignal(task, signals, { kind: 'ended', state, parentId }));
  return {
    head,
    fields: { run: JSON.stringify({ ...last, waitsFor: undefined }) },
    signals: published,
  };
}
