// The calls of a job's holder, as pure decisions: steps, waits, progress.

import {
  deadlineGraceMs,
  released,
  addHistory,
  progressSignal,
  waitAfter,
  type DecideContext,
  type Decision,
} from './task-decision.ts';
import { neverMs, type StoredTask } from '../task-job.ts';
import {
  runOf,
  stepField,
  stepOf,
  stepsOf,
  type StepRecord,
  type TaskFailure,
  type TaskRun,
  type TaskWait,
} from '../task-record.ts';

export function decideStepStart(
  task: StoredTask,
  step: { readonly name: string; readonly kind: StepRecord['kind']; readonly timeoutMs: number },
  { nowMs, signals }: DecideContext,
): Decision {
  const before = stepOf(task, step.name);
  // Including attempts that never ended because their worker died.
  const attempts = (before?.attempts ?? 0) + 1;
  const record: StepRecord = {
    kind: step.kind,
    state: 'running',
    at: before?.at ?? stepsOf(task).length,
    attempts,
    fence: task.head.fence,
    startedAtMs: nowMs,
  };
  return {
    head: { deadlineMs: nowMs + step.timeoutMs + deadlineGraceMs },
    fields: { [stepField(step.name)]: JSON.stringify(record) },
    signals: [
      progressSignal(task, signals, { kind: 'step-started', step: step.name, attempt: attempts }),
    ],
  };
}

export function decideStepFinish(
  task: StoredTask,
  step: {
    readonly name: string;
    readonly kind: StepRecord['kind'];
    readonly result: unknown;
    readonly isCompensable?: boolean | undefined;
    /** An event that this step consumes. */
    readonly dropField?: string | undefined;
  },
  { nowMs, signals, type }: DecideContext,
): Decision {
  const before = stepOf(task, step.name);
  const attempts = Math.max(1, before?.attempts ?? 1);
  const record: StepRecord = {
    kind: step.kind,
    state: 'completed',
    at: before?.at ?? stepsOf(task).length,
    attempts,
    fence: task.head.fence,
    startedAtMs: before?.startedAtMs ?? nowMs,
    endedAtMs: nowMs,
    ...(step.result === undefined ? {} : { result: step.result }),
    ...(step.isCompensable === true ? { isCompensable: true } : {}),
  };
  return {
    head: { deadlineMs: nowMs + type.stepTimeoutMs + deadlineGraceMs },
    fields: {
      [stepField(step.name)]: JSON.stringify(record),
      ...(step.dropField === undefined ? {} : { [step.dropField]: null }),
    },
    signals: [
      progressSignal(task, signals, { kind: 'step-completed', step: step.name, attempt: attempts }),
    ],
  };
}

/** With retries left the job waits for the next one; otherwise the handler gets the error, and may catch it. */
export function decideStepFailure(
  task: StoredTask,
  step: {
    readonly name: string;
    readonly kind: StepRecord['kind'];
    readonly failure: TaskFailure;
    readonly retries: number;
    readonly retryAfterMs?: number | undefined;
  },
  context: DecideContext,
): Decision & { readonly isRetried: boolean } {
  const { nowMs, signals, type } = context;
  const before = stepOf(task, step.name);
  const attempts = Math.max(1, before?.attempts ?? 1);
  const isRetried = step.failure.isTerminal !== true && attempts <= step.retries;
  const record: StepRecord = {
    kind: step.kind,
    state: 'failed',
    at: before?.at ?? stepsOf(task).length,
    attempts,
    fence: task.head.fence,
    startedAtMs: before?.startedAtMs ?? nowMs,
    endedAtMs: nowMs,
    error: step.failure,
    // Without it, the step is retried within this attempt of the job.
    ...(isRetried ? {} : { failedIn: task.head.failures }),
  };
  const failed: Decision = {
    head: { deadlineMs: nowMs + type.stepTimeoutMs + deadlineGraceMs },
    fields: { [stepField(step.name)]: JSON.stringify(record) },
    signals: [
      progressSignal(task, signals, {
        kind: 'step-failed',
        step: step.name,
        attempt: attempts,
        error: step.failure.message,
      }),
    ],
  };
  if (!isRetried) return { ...failed, isRetried };
  const untilMs = nowMs + (step.retryAfterMs ?? waitAfter(type.backoff, attempts, context.random));
  const waiting = decideWait(task, { kind: 'retry', step: step.name, untilMs }, context);
  return {
    head: { ...failed.head, ...waiting.head },
    fields: { ...failed.fields, ...waiting.fields },
    signals: [...failed.signals, ...waiting.signals],
    isRetried,
  };
}

/** Frees the worker; the job resumes when it is due or woken. */
export function decideWait(
  task: StoredTask,
  wait: TaskWait,
  { nowMs, signals }: DecideContext,
): Decision {
  const dueAtMs = wait.kind === 'children' ? neverMs : wait.untilMs;
  const { step } = wait;
  const isStep = wait.kind !== 'retry' && step !== undefined && stepOf(task, step) === undefined;
  const record: StepRecord = {
    kind: wait.kind === 'retry' ? 'step' : wait.kind,
    state: 'running',
    at: stepsOf(task).length,
    attempts: 1,
    fence: task.head.fence,
    startedAtMs: nowMs,
    ...(wait.kind === 'children' ? {} : { untilMs: wait.untilMs }),
  };
  const run = addHistory(task, nowMs, {
    what: 'waiting',
    ...(step === undefined ? {} : { step }),
    text: wait.kind === 'event' ? `for ${wait.event}` : wait.kind,
  });
  return {
    head: { ...released, state: 'waiting', dueAtMs },
    fields: {
      run: JSON.stringify({ ...run, waitsFor: wait }),
      ...(isStep ? { [stepField(step)]: JSON.stringify(record) } : {}),
    },
    signals: [progressSignal(task, signals, { kind: 'waiting', for: wait.kind, step, at: nowMs })],
  };
}

export function decideProgress(
  task: StoredTask,
  progress: NonNullable<TaskRun['progress']>,
  { nowMs, signals, type }: DecideContext,
): Decision {
  return {
    head: {
      deadlineMs: Math.max(task.head.deadlineMs, nowMs + type.stepTimeoutMs + deadlineGraceMs),
    },
    fields: { run: JSON.stringify({ ...runOf(task), progress }) },
    signals: [progressSignal(task, signals, { kind: 'progress', ...progress, at: nowMs })],
  };
}
