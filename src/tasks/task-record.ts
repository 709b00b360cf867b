// The content of a job's JSON fields, and the job as callers see it.

import type { ErrorFacts } from '../foundation/failure-cause.ts';
import { parseStored } from '../foundation/parse-json.ts';
import { neverMs, type StoredTask, type TaskHead } from './task-job.ts';
import { taskLimits } from './task-limits.ts';
import type { NewTask, TimelineEntry } from './tasks.ts';

/** An error of a handler or a step, as stored data. */
export interface TaskFailure extends ErrorFacts {
  readonly message: string;
  /** Equal for failures of one cause; set when the failure is stored. */
  readonly fingerprint?: string | undefined;
  /** Thrown as `Terminal`: no retry. */
  readonly isTerminal?: boolean | undefined;
}

/** The content of the field `info`, set when the job is enqueued. */
export type TaskInfo = Pick<
  NewTask,
  'causationId' | 'correlationId' | 'enqueuedBy' | 'key' | 'trace'
>;

export type TaskWait =
  | { readonly kind: 'sleep'; readonly step: string; readonly untilMs: number }
  | {
      readonly kind: 'event';
      readonly step: string;
      readonly event: string;
      readonly untilMs: number;
    }
  | { readonly kind: 'children'; readonly step: string; readonly ids: readonly string[] }
  /** After a failed step, or (without a step) after a failed attempt. */
  | { readonly kind: 'retry'; readonly step?: string | undefined; readonly untilMs: number };

export interface HistoryEntry {
  readonly atMs: number;
  /** `enqueued`, `claimed`, `failed`, `lost`, `waiting`, `retried`, `cancel requested`, `completed`, … */
  readonly what: string;
  readonly worker?: string | undefined;
  readonly step?: string | undefined;
  readonly text?: string | undefined;
}

/** The content of the field `run`, which changes while the job runs. */
export interface TaskRun {
  readonly progress?:
    | { readonly percent: number; readonly message?: string | undefined }
    | undefined;
  readonly result?: unknown;
  readonly error?: TaskFailure | undefined;
  readonly waitsFor?: TaskWait | undefined;
  /** The terminal state of the job after its compensations have run. */
  readonly ending?:
    | { readonly state: 'failed' | 'cancelled'; readonly error: TaskFailure }
    | undefined;
  readonly history: readonly HistoryEntry[];
  /** The number of entries that were removed from the history. */
  readonly forgotten?: number | undefined;
}

export interface StepRecord {
  /** `step` and `compensation` do work; the other kinds wait. */
  readonly kind: 'step' | 'sleep' | 'event' | 'children' | 'compensation';
  readonly state: 'running' | 'completed' | 'failed';
  /** The order in which the steps were started. */
  readonly at: number;
  readonly attempts: number;
  /** The fence of the writer; part of the signal's id. */
  readonly fence?: number | undefined;
  readonly startedAtMs: number;
  readonly endedAtMs?: number | undefined;
  readonly result?: unknown;
  readonly error?: TaskFailure | undefined;
  /** Of a failed step: the attempt of the job in which it failed; the next attempt runs it again. */
  readonly failedIn?: number | undefined;
  /** The step has a compensation. */
  readonly isCompensable?: boolean | undefined;
  readonly untilMs?: number | undefined;
}

/** The content of the field `cancel`. Separate from `run`, which only the worker of a running job writes. */
export interface CancelRecord {
  readonly reason: string;
  readonly atMs: number;
}

export interface EventRecord {
  readonly payload: unknown;
  readonly atMs: number;
}

/** Written when a running job is cancelled. */
export const cancelField = 'cancel';
const stepPrefix = 'step:';
const eventPrefix = 'event:';
export const stepField = (name: string): string => `${stepPrefix}${name}`;
/** One field per received event, so that no event overwrites another. */
export const eventField = (event: string, id: string): string => `${eventPrefix}${event}:${id}`;

/** Set by an engine or by `personalJobs` when a part of the job cannot be read: the name of that part. */
export const damagedField = 'damaged';

type Damaged = string[] | undefined;

export const infoOf = (task: StoredTask, damaged?: Damaged): TaskInfo =>
  parse(task, 'info', damaged) ?? {};

export function runOf(task: StoredTask, damaged?: Damaged): TaskRun {
  const run = parse(task, 'run', damaged) as Partial<TaskRun> | undefined;
  return { ...run, history: Array.isArray(run?.history) ? run.history : [] };
}

export const cancelOf = (task: StoredTask, damaged?: Damaged): CancelRecord | undefined =>
  parse(task, cancelField, damaged) as CancelRecord | undefined;

export const stepOf = (task: StoredTask, name: string): StepRecord | undefined =>
  parse(task, stepField(name)) as StepRecord | undefined;

/** In the order in which they were started. */
export function stepsOf(
  task: StoredTask,
  damaged?: Damaged,
): readonly (readonly [string, StepRecord])[] {
  const steps: (readonly [string, StepRecord])[] = [];
  for (const name of Object.keys(task.fields)) {
    if (!name.startsWith(stepPrefix)) continue;
    const record = parse(task, name, damaged) as StepRecord | undefined;
    if (record !== undefined) steps.push([name.slice(stepPrefix.length), record]);
  }
  return steps.length < 2 ? steps : steps.toSorted(([, a], [, b]) => a.at - b.at);
}

/** The first received event of this name. */
export function firstEvent(
  task: StoredTask,
  event: string,
): { readonly field: string; readonly record: EventRecord } | undefined {
  const prefix = eventField(event, '');
  let found: { readonly field: string; readonly record: EventRecord } | undefined;
  for (const field of Object.keys(task.fields)) {
    if (!field.startsWith(prefix)) continue;
    const record = parse(task, field) as EventRecord | undefined;
    if (record === undefined) continue;
    const isBefore =
      found === undefined ||
      record.atMs < found.record.atMs ||
      (record.atMs === found.record.atMs && field < found.field);
    if (isBefore) found = { field, record };
  }
  return found;
}

/** Keeps the first few entries and the newest ones. */
export function withHistory(run: TaskRun, ...entries: readonly HistoryEntry[]): TaskRun {
  const all = [...run.history, ...entries];
  const over = all.length - taskLimits.historyMax;
  if (over <= 0) return { ...run, history: all };
  const first = 5;
  return {
    ...run,
    history: [...all.slice(0, first), ...all.slice(first + over)],
    forgotten: (run.forgotten ?? 0) + over,
  };
}

/** Undefined: the field is missing, or damaged; then its name is added to `damaged`. */
function parse(
  { fields }: StoredTask,
  name: string,
  damaged?: Damaged,
): Readonly<Record<string, unknown>> | undefined {
  const text = fields[name];
  if (text === undefined) return undefined;
  const value = parseStored(text);
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  damaged?.push(name);
  return undefined;
}

function payloadOf({ fields }: StoredTask, damaged: string[]): unknown {
  const value = parseStored(fields['payload'] ?? 'null');
  if (value === undefined) damaged.push('payload');
  return value ?? null;
}

/** A step as callers see it. */
export interface TaskStep extends Pick<StepRecord, 'attempts' | 'kind' | 'state'> {
  readonly name: string;
  readonly startedAt: Date;
  readonly endedAt: Date | undefined;
  readonly result: unknown;
  readonly error: TaskFailure | undefined;
  /** Failed, without a retry in this attempt of the job. */
  readonly isFinal: boolean;
  readonly isCompensable: boolean;
  /** When a wait ends. */
  readonly until: Date | undefined;
}

/** A job as callers see it. */
export interface Task
  extends
    Pick<TaskHead, 'failures' | 'fence' | 'id' | 'priority' | 'revision' | 'state' | 'type'>,
    Required<Pick<TaskInfo, 'causationId' | 'correlationId' | 'key' | 'trace'>>,
    Required<Pick<TaskRun, 'error' | 'progress' | 'result' | 'waitsFor'>> {
  readonly tenant: string | undefined;
  readonly payload: unknown;
  readonly labels: Readonly<Record<string, string>>;
  readonly concurrencyKey: string | undefined;
  readonly parentId: string | undefined;
  /** The running or next attempt; the first is 1. */
  readonly attempt: number;
  readonly worker: string | undefined;
  /** The terminal state after the running compensations; undefined: no compensation runs. */
  readonly endsAs: 'failed' | 'cancelled' | undefined;
  /** The job is being cancelled, and ended by force after this time. */
  readonly cancelAt: Date | undefined;
  readonly steps: readonly TaskStep[];
  readonly history: readonly HistoryEntry[];
  readonly enqueuedAt: Date;
  /** Undefined: only an event or a person can wake it. */
  readonly dueAt: Date | undefined;
  readonly claimedAt: Date | undefined;
  readonly updatedAt: Date;
  readonly endedAt: Date | undefined;
}

export interface ReadTask {
  readonly task: Task;
  /** Set if a stored part of the job cannot be read: no handler may run it. */
  readonly damage: TaskFailure | undefined;
}

export const toTask = (stored: StoredTask): Task => readTask(stored).task;

export function readTask(stored: StoredTask): ReadTask {
  const { head, fields } = stored;
  const { [damagedField]: part } = fields;
  const damaged = part === undefined ? [] : [part];
  const info = infoOf(stored, damaged);
  const run = runOf(stored, damaged);
  const payload = payloadOf(stored, damaged);
  const steps = stepsOf(stored, damaged);
  cancelOf(stored, damaged);
  for (const name in fields) {
    if (name.startsWith(eventPrefix)) parse(stored, name, damaged);
  }
  const damage = damaged.length === 0 ? undefined : damageOf(damaged);
  const task: Task = {
    id: head.id,
    type: head.type,
    tenant: textOf(head.tenant),
    state: head.state,
    priority: head.priority,
    payload,
    labels: labelsOf(head.labels),
    key: info.key,
    concurrencyKey: textOf(head.concurrencyKey),
    parentId: textOf(head.parentId),
    attempt: head.failures + 1,
    failures: head.failures,
    fence: head.fence,
    revision: head.revision,
    worker: textOf(head.worker),
    progress: run.progress,
    result: run.result,
    error: damage ?? run.error,
    waitsFor: head.state === 'waiting' || head.state === 'scheduled' ? run.waitsFor : undefined,
    endsAs: run.ending?.state,
    cancelAt: dateOf(head.cancelAtMs),
    steps: steps.map(([name, step]) => ({
      name,
      kind: step.kind,
      state: step.state,
      attempts: step.attempts,
      startedAt: new Date(step.startedAtMs),
      endedAt: dateOf(step.endedAtMs ?? 0),
      result: step.result,
      error: step.error,
      isFinal: step.state === 'failed' && step.failedIn === head.failures,
      isCompensable: step.isCompensable === true,
      until: dateOf(step.untilMs === undefined || step.untilMs >= neverMs ? 0 : step.untilMs),
    })),
    history: run.history,
    correlationId: info.correlationId,
    causationId: info.causationId,
    trace: info.trace,
    enqueuedAt: new Date(head.enqueuedAtMs),
    dueAt: head.dueAtMs >= neverMs ? undefined : new Date(head.dueAtMs),
    claimedAt: dateOf(head.claimedAtMs),
    updatedAt: new Date(head.updatedAtMs),
    endedAt: dateOf(head.endedAtMs),
  };
  return { task, damage };
}

/** The damaged text is not quoted, because it may be personal data. */
function damageOf(names: readonly string[]): TaskFailure {
  const message = `the stored job cannot be read: ${names.join(', ')}`;
  return { message, name: 'MillraceError', code: 'STORE_CORRUPT', isTerminal: true };
}

const textOf = (text: string): string | undefined => (text === '' ? undefined : text);
const dateOf = (ms: number): Date | undefined => (ms === 0 ? undefined : new Date(ms));

function labelsOf(labels: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    labels.map((label) => {
      const at = label.indexOf('=');
      return [label.slice(0, at), label.slice(at + 1)];
    }),
  );
}

/** The history of a job together with its steps, in order of time. */
export function timelineOf(task: StoredTask): readonly TimelineEntry[] {
  const run = runOf(task);
  const steps = stepsOf(task).flatMap(([step, record]): readonly HistoryEntry[] => {
    const { kind, state, startedAtMs, endedAtMs, error } = record;
    const started = { atMs: startedAtMs, what: `${kind} started`, step };
    if (endedAtMs === undefined) return [started];
    return [started, { atMs: endedAtMs, what: `${kind} ${state}`, step, text: error?.message }];
  });
  return [...run.history, ...unrecordedClaim(task, run), ...unrecordedCancel(task), ...steps]
    .toSorted((a, b) => a.atMs - b.atMs)
    .map(({ atMs, what, step, worker, text }) => ({
      at: new Date(atMs),
      what,
      step,
      worker,
      text,
    }));
}

/** A claim writes no history, so the change that follows it adds its entry. */
export function unrecordedClaim(
  { head }: StoredTask,
  { history }: TaskRun,
): readonly HistoryEntry[] {
  const { state, claimedAtMs, worker } = head;
  const isRecorded = history.some(({ what, atMs }) => what === 'claimed' && atMs === claimedAtMs);
  return state !== 'running' || isRecorded ? [] : [{ atMs: claimedAtMs, what: 'claimed', worker }];
}

/** The request to cancel a running job; the change that ends the job adds it to the history. */
export function unrecordedCancel(task: StoredTask): readonly HistoryEntry[] {
  const cancel = cancelOf(task);
  if (cancel === undefined) return [];
  return [{ atMs: cancel.atMs, what: 'cancel requested', text: cancel.reason }];
}
