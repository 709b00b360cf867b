// A job as engines store it: a head that engines query by, and named JSON strings that are opaque to them.

import { subjectHeader } from '../store/erasure.ts';

/**
 * `scheduled`, `queued` and `waiting` may be claimed when due; a worker holds a `running` job; the other three are
 * terminal.
 */
export const taskStates = [
  'scheduled',
  'queued',
  'waiting',
  'running',
  'completed',
  'failed',
  'cancelled',
] as const;

export type TaskState = (typeof taskStates)[number];
export type TerminalState = 'completed' | 'failed' | 'cancelled';

export function isTerminal(state: TaskState): state is TerminalState {
  return state === 'completed' || state === 'failed' || state === 'cancelled';
}

/** The due time of a job that only an event or a person can wake. */
export const neverMs = 8_640_000_000_000_000;

/** The id of a job starts with its type, so that an engine can locate it by the id alone. */
export interface TaskRef {
  readonly id: string;
  readonly type: string;
}

/** The part of a job that an engine may inspect: numbers and short strings. */
export interface TaskHead extends TaskRef {
  /** `''`: no tenant. */
  readonly tenant: string;
  readonly state: TaskState;
  /** Grows by one with every change. */
  readonly revision: number;
  /** Grows by one with every claim; a holder with an older fence is stale. */
  readonly fence: number;
  /** 0 to 9; highest first. */
  readonly priority: number;
  /** When the job may be claimed, unless it is running or has ended. */
  readonly dueAtMs: number;
  /** The claim rule limits how many jobs of one key run at once. `''`: no limit. */
  readonly concurrencyKey: string;
  /** Failed attempts since it was enqueued or retried by a person. */
  readonly failures: number;
  /** The worker that runs it; `''`: none. */
  readonly worker: string;
  /** While it runs: after this the sweeper treats it as stuck, also if its worker is alive. */
  readonly deadlineMs: number;
  /** 0, or the time after which a cancelled job is ended by force. */
  readonly cancelAtMs: number;
  /** The job that waits for this one; `''`: none. */
  readonly parentId: string;
  /** `name=value`, sorted. */
  readonly labels: readonly string[];
  readonly enqueuedAtMs: number;
  /** The time of the last claim; 0 before the first. */
  readonly claimedAtMs: number;
  readonly updatedAtMs: number;
  /** 0 until the job has ended. */
  readonly endedAtMs: number;
}

/**
 * JSON strings by name, opaque to engines. `payload` and `info` (enqueued by, trace, key) never change. `run` has
 * progress, result, error, history and the current wait. `cancel` is the request to cancel a running job.
 * `step:<name>` and `event:<name>` are separate fields, so that a step does not rewrite the whole job.
 */
export type TaskFields = Readonly<Record<string, string>>;

/** The size of a job without its head. */
export function fieldBytes(fields: TaskFields): number {
  return Object.values(fields).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** Stands for the head of a job that cannot be read: the next claim gets the job, and fails it. */
export function damagedHead(id: string): TaskHead {
  return {
    id,
    type: taskTypeOf(id),
    tenant: '',
    state: 'queued',
    revision: 0,
    fence: 0,
    priority: 0,
    dueAtMs: 0,
    concurrencyKey: '',
    failures: 0,
    worker: '',
    deadlineMs: neverMs,
    cancelAtMs: 0,
    parentId: '',
    labels: [],
    enqueuedAtMs: 0,
    claimedAtMs: 0,
    updatedAtMs: 0,
    endedAtMs: 0,
  };
}

/** The person that the job is about, by its label `dataSubject`. Undefined: the job is not about a person. */
export function subjectOfJob({ labels }: Pick<TaskHead, 'labels'>): string | undefined {
  const prefix = `${subjectHeader}=`;
  return labels.find((label) => label.startsWith(prefix))?.slice(prefix.length);
}

export interface StoredTask {
  readonly head: TaskHead;
  readonly fields: TaskFields;
}

/**
 * The type at the start of a job's id: `email-send.0199…` → `email-send`.
 *
 * @example
 * import { taskTypeOf } from 'millrace/tasks';
 *
 * console.log(taskTypeOf('email-send.01995b2e-0000-7000-8000-000000000000')); // email-send
 */
export function taskTypeOf(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf('.')));
}
