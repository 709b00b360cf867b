// The life of a job, as pure decisions: what is to be written, and what the streams are told. Whoever
// carries one out does so with a guard, so that a decision about something older changes nothing.

import { backoffMs } from '../foundation/backoff.ts';
import type { HeadChange } from './task-engine.ts';
import { isTerminal, neverMs, type StoredTask, type TaskHead } from './task-job.ts';
import {
  eventField,
  infoOf,
  runOf,
  stepField,
  stepOf,
  stepsOf,
  withHistory,
  type HistoryEntry,
  type StepRecord,
  type TaskFailure,
  type TaskRun,
  type TaskWait,
} from './task-record.ts';
import type { SignalMaker, TaskSignal } from './task-signal.ts';
import type { TaskBackoff, TaskType } from './task-type.ts';

export interface Decision {
  readonly head: HeadChange;
  readonly fields: Readonly<Record<string, string | null>>;
  readonly signals: readonly TaskSignal[];
}

export interface DecideContext {
  readonly nowMs: number;
  readonly type: TaskType;
  readonly signals: SignalMaker;
  /** In [0, 1), for jitter. */
  readonly random?: number | undefined;
}

/** As it is after the decision; the engine comes to the same. */
export function applyDecision(
  task: StoredTask,
  { head, fields }: Decision,
  nowMs: number,
): StoredTask {
  const next: Record<string, string> = { ...task.fields };
  for (const [name, text] of Object.entries(fields)) {
    if (text === null) delete next[name];
    else next[name] = text;
  }
  const { revision } = task.head;
  return {
    head: { ...task.head, ...head, revision: revision + 1, updatedAtMs: nowMs },
    fields: next,
  };
}

/** So much longer than the step may take is a job left alone: its worker ends it first, by itself. */
export const deadlineGraceMs = 5_000;

export function decideStepStart(
  task: StoredTask,
  step: { readonly name: string; readonly kind: StepRecord['kind']; readonly timeoutMs: number },
  { nowMs, signals }: DecideContext,
): Decision {
  const before = stepOf(task, step.name);
  // Also of one that was begun before and never ended: whoever did is gone.
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
    signals: [told(task, signals, { kind: 'step-started', step: step.name, attempt: attempts })],
  };
}

export function decideStepFinish(
  task: StoredTask,
  step: {
    readonly name: string;
    readonly kind: StepRecord['kind'];
    readonly result: unknown;
    readonly isCompensable?: boolean | undefined;
    /** An event that was taken with it. */
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
    signals: [told(task, signals, { kind: 'step-completed', step: step.name, attempt: attempts })],
  };
}

/** With attempts left the job waits for the next one; else the handler is told, and may catch it. */
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
    // Without it the step is tried again within this attempt of the job.
    ...(isRetried ? {} : { failedIn: task.head.failures }),
  };
  const failed: Decision = {
    head: { deadlineMs: nowMs + type.stepTimeoutMs + deadlineGraceMs },
    fields: { [stepField(step.name)]: JSON.stringify(record) },
    signals: [
      told(task, signals, {
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

/** Lets the worker go; the job comes back when it is due, or is woken. */
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
  const run = noted(task, nowMs, {
    what: 'waiting',
    ...(step === undefined ? {} : { step }),
    text: wait.kind === 'event' ? `for ${wait.event}` : wait.kind,
  });
  return {
    head: { ...letGo, state: 'waiting', dueAtMs },
    fields: {
      run: JSON.stringify({ ...run, waitsFor: wait }),
      ...(isStep ? { [stepField(step)]: JSON.stringify(record) } : {}),
    },
    signals: [told(task, signals, { kind: 'waiting', for: wait.kind, step, at: nowMs })],
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
    signals: [told(task, signals, { kind: 'progress', ...progress, at: nowMs })],
  };
}

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

/** Undefined: it has not ended, so there is nothing to do again. */
export function decideRetry(
  task: StoredTask,
  how: { readonly fromStep?: string | undefined; readonly by?: string | undefined },
  { nowMs, signals }: DecideContext,
): Decision | undefined {
  const { head } = task;
  if (!isTerminal(head.state)) return undefined;
  const steps = stepsOf(task);
  const from = steps.find(([name]) => name === how.fromStep)?.[1].at ?? Number.POSITIVE_INFINITY;
  // What was undone has to be done again; and what failed is tried again anyway.
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
  const {
    result: _result,
    error: _error,
    ending: _ending,
    progress: _progress,
    ...run
  } = noted(task, nowMs, {
    what: 'retried',
    text: how.fromStep === undefined ? undefined : `from ${how.fromStep}`,
  });
  const next = {
    state: 'queued' as const,
    // The next end is another end, with a signal of its own.
    fence: head.fence + 1,
    dueAtMs: nowMs,
    failures: 0,
    endedAtMs: 0,
    cancelAtMs: 0,
  };
  return {
    head: next,
    fields: {
      run: JSON.stringify(run),
      ...Object.fromEntries(dropped.map(([name]) => [stepField(name), null])),
    },
    signals: [signals.queued({ ...head, ...next }, infoOf(task))],
  };
}

/** Undefined: it has ended, nobody will ask for it. */
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

/** What it waited for is there: a worker may go on with it now. */
export function decideWake(task: StoredTask, { nowMs, signals }: DecideContext): Decision {
  const head = { state: 'queued' as const, dueAtMs: nowMs };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

/** Its time has come: the queue's stream is told; whoever claims does not wait for that. */
export function decideDue(task: StoredTask, { signals }: DecideContext): Decision | undefined {
  if (task.head.state !== 'scheduled') return undefined;
  const head = { state: 'queued' as const };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

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

/** Nobody has looked at it: as if it had not been claimed, but for the fence. */
export function decideRelease(task: StoredTask, { nowMs, signals }: DecideContext): Decision {
  const head = { ...letGo, state: 'queued' as const, dueAtMs: nowMs };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

const letGo = { worker: '', deadlineMs: neverMs } as const;

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

/** A claim writes no history: whoever writes next does, for it. */
function noted(
  task: StoredTask,
  nowMs: number,
  entry: Omit<HistoryEntry, 'atMs'>,
  run: TaskRun = runOf(task),
): TaskRun {
  const { head } = task;
  const isClaimKnown =
    head.state !== 'running' ||
    run.history.some(({ what, atMs }) => what === 'claimed' && atMs === head.claimedAtMs);
  const claimed = isClaimKnown
    ? []
    : [{ atMs: head.claimedAtMs, what: 'claimed', worker: head.worker }];
  return withHistory(run, ...claimed, { atMs: nowMs, ...entry });
}

function told(
  task: StoredTask,
  signals: SignalMaker,
  what: { readonly kind: string } & Readonly<Record<string, unknown>>,
): TaskSignal {
  const present = Object.fromEntries(
    Object.entries(what).filter(([, value]) => value !== undefined),
  ) as typeof what;
  return signals.progressed(task.head, infoOf(task), present);
}

function waitAfter(backoff: TaskBackoff, failures: number, random?: number): number {
  return backoffMs({ ...backoff, attemptsMax: Infinity }, failures, random ?? Math.random());
}
