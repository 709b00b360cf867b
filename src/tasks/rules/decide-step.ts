// Pure decisions about the calls of the worker that holds a job: steps, waits, progress.

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

interface StepRef {
  readonly name: string;
  readonly kind: StepRecord['kind'];
}

/** The change of a step's record, with the signal of its state. */
function changeStep(
  task: StoredTask,
  { name, kind }: StepRef,
  change: Pick<StepRecord, 'state'> & Partial<StepRecord>,
  { nowMs, signals, timeoutMs }: DecideContext & { readonly timeoutMs: number },
): Decision {
  const before = stepOf(task, name);
  const attempts = change.attempts ?? Math.max(1, before?.attempts ?? 1);
  const record: StepRecord = {
    kind,
    at: before?.at ?? stepsOf(task).length,
    fence: task.head.fence,
    startedAtMs: before?.startedAtMs ?? nowMs,
    endedAtMs: nowMs,
    ...change,
    attempts,
  };
  const state = change.state === 'running' ? 'started' : change.state;
  const error = change.error?.message;
  return {
    head: { deadlineMs: nowMs + timeoutMs + deadlineGraceMs },
    fields: { [stepField(name)]: JSON.stringify(record) },
    signals: [
      progressSignal(task, signals, {
        kind: `step-${state}`,
        step: name,
        attempt: attempts,
        error,
      }),
    ],
  };
}

export function decideStepStart(
  task: StoredTask,
  step: StepRef & { readonly timeoutMs: number },
  context: DecideContext,
): Decision {
  // Including attempts that never ended because their worker died.
  const attempts = (stepOf(task, step.name)?.attempts ?? 0) + 1;
  const { timeoutMs } = step;
  const started = { startedAtMs: context.nowMs, endedAtMs: undefined };
  const change = { state: 'running', attempts, ...started } as const;
  return changeStep(task, step, change, { ...context, timeoutMs });
}

export function decideStepFinish(
  task: StoredTask,
  step: StepRef & {
    readonly result: unknown;
    readonly isCompensable?: boolean | undefined;
    /** An event that this step consumes. */
    readonly dropField?: string | undefined;
  },
  context: DecideContext,
): Decision {
  const { result, isCompensable, dropField } = step;
  const change = { state: 'completed', result, isCompensable: isCompensable || undefined } as const;
  const decided = changeStep(task, step, change, {
    ...context,
    timeoutMs: context.type.stepTimeoutMs,
  });
  if (dropField === undefined) return decided;
  return { ...decided, fields: { ...decided.fields, [dropField]: null } };
}

/** With retries left the job waits for the next one; otherwise the handler gets the error, and may catch it. */
export function decideStepFailure(
  task: StoredTask,
  step: StepRef & {
    readonly failure: TaskFailure;
    readonly retries: number;
    readonly retryAfterMs?: number | undefined;
  },
  context: DecideContext,
): Decision & { readonly isRetried: boolean } {
  const { nowMs, type } = context;
  const attempts = Math.max(1, stepOf(task, step.name)?.attempts ?? 1);
  const isRetried = step.failure.isTerminal !== true && attempts <= step.retries;
  // Without `failedIn`, the step is retried within this attempt of the job.
  const failedIn = isRetried ? undefined : task.head.failures;
  const change = { state: 'failed', error: step.failure, failedIn } as const;
  const failed = changeStep(task, step, change, { ...context, timeoutMs: type.stepTimeoutMs });
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
    untilMs: wait.kind === 'children' ? undefined : wait.untilMs,
  };
  const run = addHistory(task, nowMs, {
    what: 'waiting',
    step,
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
