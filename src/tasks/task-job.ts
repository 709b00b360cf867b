// A job as it is kept: a head that engines select and change by, and named texts that they only keep.

/**
 * `scheduled`, `queued` and `waiting` may be claimed once they are due; `running` is held by a worker;
 * the other three are the ends, of which each job reaches one.
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

/** Later than everything: a job that nothing but an event or a person brings back. */
export const neverMs = 8_640_000_000_000_000;

/** Which job: the id begins with its type, so that an engine finds its place by the id alone. */
export interface TaskRef {
  readonly id: string;
  readonly type: string;
}

/** What an engine may look at. Everything in it is a number or a short text. */
export interface TaskHead extends TaskRef {
  /** `''`: of no tenant. */
  readonly tenant: string;
  readonly state: TaskState;
  /** Grows by one with every change, whoever makes it. */
  readonly revision: number;
  /** Grows by one with every claim: whoever has an older one holds nothing any more. */
  readonly fence: number;
  /** 0 to 9; the highest first. */
  readonly priority: number;
  /** When it may be claimed, unless it runs or has ended. */
  readonly dueAtMs: number;
  /** At most so many of one key run at once as the claim's rule says. `''`: no bound. */
  readonly concurrencyKey: string;
  /** Attempts that failed since it was enqueued, or retried by a person. */
  readonly failures: number;
  /** Who runs it; `''` while nobody does. */
  readonly worker: string;
  /** While it runs: when the sweeper takes it for stuck, though its worker is alive. */
  readonly deadlineMs: number;
  /** 0, or: it is to be cancelled, and by force from then on. */
  readonly cancelAtMs: number;
  /** The job that waits for it; `''`: none. */
  readonly parentId: string;
  /** `name=value`, in order. */
  readonly labels: readonly string[];
  readonly enqueuedAtMs: number;
  /** Of the last claim; 0 before the first. */
  readonly claimedAtMs: number;
  readonly updatedAtMs: number;
  /** 0 until it has ended. */
  readonly endedAtMs: number;
}

/**
 * The texts of a job, by name; all JSON, and opaque to engines:
 * `payload` (never changes), `info` (never changes: who enqueued it, trace, key), `run` (progress, result,
 * error, history, what it waits for), `step:<name>` and `event:<name>`, one each, so that a step writes
 * its own record and not the whole job.
 */
export type TaskFields = Readonly<Record<string, string>>;

export interface StoredTask {
  readonly head: TaskHead;
  readonly fields: TaskFields;
}

/**
 * The type that a job's id begins with: `email-send.0199…` → `email-send`.
 *
 * @example
 * import { taskTypeOf } from 'millrace/tasks';
 *
 * console.log(taskTypeOf('email-send.01995b2e-0000-7000-8000-000000000000')); // email-send
 */
export function taskTypeOf(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf('.')));
}
