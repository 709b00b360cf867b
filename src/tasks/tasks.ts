// The port for callers, workers in any language and administrators: jobs of task types, over any engine.

import type { Subjects } from '../contracts/subjects.ts';
import type { TraceContext } from '../foundation/observer.ts';
import type { TaskChanges, TaskChangesContext } from './task-changes.ts';
import type {
  ClaimWait,
  TaskCapabilities,
  TaskPageQuery,
  TypeCount,
  TypeMode,
} from './task-engine.ts';
import type { TaskState, TerminalState } from './task-job.ts';
import type { HistoryEntry, StepRecord, Task, TaskFailure } from './task-record.ts';
import type { SignalMaker } from './task-signal.ts';
import type { TaskType } from './task-type.ts';

export interface NewTask {
  readonly type: string;
  /** A JSON value, validated by the schema of the handler, if it has one. */
  readonly payload: unknown;
  readonly tenant?: string | undefined;
  /**
   * A second job with the same key (per tenant and type) is not stored: within the dedupe window of the job or its
   * type, or else as long as the first job is kept.
   */
  readonly key?: string | undefined;
  /** 0: as long as the first job is kept, regardless of the type. */
  readonly dedupeWindowMs?: number | undefined;
  /** 0 to 9, highest first. Default: that of the type, 5. */
  readonly priority?: number | undefined;
  readonly delayMs?: number | undefined;
  readonly runAt?: Date | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Default: derived by the rule of the type. */
  readonly concurrencyKey?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly trace?: TraceContext | undefined;
  readonly enqueuedBy?: string | undefined;
  /** The job that waits for this one. */
  readonly parentId?: string | undefined;
}

export interface Enqueued {
  /** With `isDuplicate`: the id of the existing job. */
  readonly id: string;
  readonly isDuplicate: boolean;
}

/** `…From` is inclusive, `…Before` exclusive. */
export interface TaskQuery extends Pick<NewTask, 'labels' | 'parentId' | 'tenant'> {
  readonly type?: string | undefined;
  readonly state?: TaskState | readonly TaskState[] | undefined;
  readonly enqueuedFrom?: Date | undefined;
  readonly enqueuedBefore?: Date | undefined;
  readonly updatedFrom?: Date | undefined;
  readonly updatedBefore?: Date | undefined;
}

type TaskPageOptions = {
  readonly [Name in keyof TaskPageQuery]?: TaskPageQuery[Name] | undefined;
};

export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly cursor: string | undefined;
}

export interface BulkOutcome {
  readonly changed: number;
  /** Jobs whose state did not allow the change, or that changed concurrently. */
  readonly skipped: number;
}

export interface BulkProgress extends BulkOutcome {
  /** The number of matching jobs at the start; undefined if the query filters by more than type and state. */
  readonly matching: number | undefined;
}

export interface BulkOptions {
  /** After each page. */
  readonly onProgress?: ((progress: BulkProgress) => void) | undefined;
  /** Stops after a page, with `ABORTED`; completed changes stay. */
  readonly signal?: AbortSignal | undefined;
}

/** One entry of the history of a job, in order. */
export interface TimelineEntry extends Required<Omit<HistoryEntry, 'atMs'>> {
  readonly at: Date;
}

export interface WorkerInfo {
  readonly worker: string;
  readonly aliveUntil: Date;
  readonly isAlive: boolean;
  readonly about: unknown;
}

/** Identifies a claimed job in every call of its worker. Plain data, so it can be sent elsewhere. */
export interface TaskToken {
  readonly id: string;
  readonly fence: number;
}

export interface ClaimedTask {
  readonly token: TaskToken;
  readonly task: Task;
}

export interface ClaimOptions {
  /** Unique for each start of a process. */
  readonly worker: string;
  /** The most jobs of each type. */
  readonly types: Readonly<Record<string, number>>;
  /** Over all types. Default: the sum of `types`, at most 100. */
  readonly limit?: number | undefined;
  /** How long to wait for the first job. Default: 5 s; 0: only jobs that are due now. */
  readonly waitMs?: number | undefined;
  /** How long the worker counts as alive without a heartbeat. Default: 15 s. */
  readonly leaseMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly aroundClaim?: ClaimWait['aroundClaim'];
}

export interface HeartbeatRequest extends Pick<ClaimOptions, 'leaseMs' | 'worker'> {
  /** The jobs that the worker holds; `heartbeat` returns the state of each. */
  readonly tokens?: readonly TaskToken[] | undefined;
  /** Shown in lists of workers. */
  readonly about?: unknown;
}

/** `lost`: another worker holds the job, or it has ended: stop, further calls are rejected. */
export interface ClaimState {
  readonly id: string;
  readonly state: 'claimed' | 'lost';
  /** The job is being cancelled: stop before this time, and call `cancelled`. */
  readonly cancelAt: Date | undefined;
}

export interface StepStart {
  readonly name: string;
  readonly kind?: StepRecord['kind'] | undefined;
  /** Default: that of the type. */
  readonly timeoutMs?: number | undefined;
}

export interface StepFinish extends Pick<StepStart, 'kind' | 'name'> {
  readonly result?: unknown;
  /** The step has a compensation, which runs as `undo:<name>` if the job does not complete. */
  readonly isCompensable?: boolean | undefined;
}

export interface StepFailure extends Pick<StepStart, 'kind' | 'name'> {
  readonly failure: TaskFailure;
  /** Retries within this attempt of the job. Default: 0. */
  readonly retries?: number | undefined;
  /** Default: the backoff of the type. */
  readonly retryAfterMs?: number | undefined;
}

/** `released`: the job waits and its worker is free; a later claim returns it with the event. */
export type EventWait =
  | { readonly kind: 'event'; readonly payload: unknown }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'released' };

/** The outcome of a child. */
export interface ChildOutcome {
  readonly id: string;
  readonly state: TerminalState;
  readonly result?: unknown;
  readonly error?: TaskFailure | undefined;
}

export type ChildrenWait =
  | { readonly kind: 'ended'; readonly children: readonly ChildOutcome[] }
  | { readonly kind: 'released' };

/**
 * The calls of a worker about a job that it claimed. Each call is durable when it resolves, and rejects with
 * `TASK_STALE` if another worker holds the job or the job has ended.
 */
export interface ClaimedJobCalls {
  startStep(token: TaskToken, step: StepStart): Promise<void>;
  finishStep(token: TaskToken, step: StepFinish): Promise<void>;
  /** True: the job waits for the retry of the step, and its worker is free. */
  failStep(token: TaskToken, step: StepFailure): Promise<{ readonly isRetried: boolean }>;
  progress(
    token: TaskToken,
    progress: { readonly percent: number; readonly message?: string | undefined },
  ): Promise<void>;
  /** `released`: the worker is free, and the job is due at that time. `over`: the time has passed, continue. */
  sleep(
    token: TaskToken,
    sleep: { readonly name: string; readonly until: Date },
  ): Promise<{ readonly kind: 'over' | 'released' }>;
  waitForEvent(
    token: TaskToken,
    wait: {
      readonly name: string;
      readonly event: string;
      readonly timeoutMs?: number | undefined;
    },
  ): Promise<EventWait>;
  /** Enqueues the children (each once, also if repeated), and waits until all have ended. */
  runChildren(
    token: TaskToken,
    children: { readonly name: string; readonly tasks: readonly NewTask[] },
  ): Promise<ChildrenWait>;
  complete(token: TaskToken, result?: unknown): Promise<void>;
  /** The attempt failed: the job is retried or ends, by the rules of the type. */
  fail(
    token: TaskToken,
    failure: TaskFailure,
    options?: { readonly retryAfterMs?: number | undefined },
  ): Promise<void>;
  /** The handler stopped because the job is being cancelled. */
  cancelled(token: TaskToken): Promise<void>;
  /** All compensations have run. */
  compensated(token: TaskToken): Promise<void>;
  /** Returns the job unchanged to the queue. */
  release(token: TaskToken): Promise<void>;
}

/** Internals for the loops of this folder (workers, sweeper, orchestrator). Not for applications. */
export interface TaskCore
  extends
    Pick<TaskChanges, 'change' | 'wakeParent'>,
    Pick<TaskChangesContext, 'clock' | 'decideContext' | 'engine' | 'observer'> {
  readonly signals: SignalMaker;
  readonly subjects: Subjects<string>;
}

/** Runs the read of an ended job, for example when there is memory for it. It does not run while the call waits. */
export type AroundLoad = <Result>(work: () => Promise<Result>) => Promise<Result>;

/**
 * Tasks.
 *
 * @example
 * import type { Tasks } from 'millrace/tasks';
 *
 * async function sendOne(tasks: Tasks) {
 *   const { id } = await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' }, key: 'welcome-c-1' });
 *   const [claimed] = await tasks.claim({ worker: 'w-1', types: { 'email-send': 1 } });
 *   if (claimed !== undefined) await tasks.complete(claimed.token, { sent: true });
 *   console.log((await tasks.get(id))?.state);
 * }
 */
export interface Tasks extends ClaimedJobCalls, AsyncDisposable {
  readonly capabilities: TaskCapabilities;
  /** For `startWorkers`, `startTaskSweeper`, `startTaskOrchestrator` and `watchTaskTypes`: a wrapper passes it on. */
  readonly core: TaskCore;

  /** Resolves when the job is stored. After `TASKS_UNAVAILABLE`, repeat the call with the same key. */
  enqueue(task: NewTask): Promise<Enqueued>;
  /** In as few round trips as possible. All jobs are validated before any is stored. */
  enqueueMany(tasks: readonly NewTask[]): Promise<readonly Enqueued[]>;

  get(id: string): Promise<Task | undefined>;
  /** Newest first. */
  list(query?: TaskQuery, page?: TaskPageOptions): Promise<TaskPage>;
  counts(): Promise<readonly TypeCount[]>;
  timeline(id: string): Promise<readonly TimelineEntry[]>;
  /** Resolves with the job when it has ended; rejects with `TASK_TIMEOUT` if it does not end in time. */
  whenEnded(
    id: string,
    options?: {
      readonly timeoutMs?: number | undefined;
      readonly signal?: AbortSignal | undefined;
      readonly aroundLoad?: AroundLoad | undefined;
    },
  ): Promise<Task>;

  /** Ends a waiting job; a running job is notified, and ended by force after the deadline. False: not cancelled. */
  cancel(
    id: string,
    options?: { readonly reason?: string | undefined; readonly deadlineMs?: number | undefined },
  ): Promise<boolean>;
  /** Runs an ended job again; completed steps are kept, except those from `fromStep` on. */
  retry(id: string, options?: { readonly fromStep?: string | undefined }): Promise<boolean>;
  /** For a current or later `waitForEvent`. False: the job has ended. */
  sendEvent(
    id: string,
    event: {
      readonly name: string;
      readonly payload?: unknown;
      readonly eventId?: string | undefined;
    },
  ): Promise<boolean>;
  cancelMany(
    query: TaskQuery,
    options?: BulkOptions & { readonly reason?: string | undefined },
  ): Promise<BulkOutcome>;
  /** Jobs of `exceptType` are skipped. */
  retryMany(
    query: TaskQuery,
    options?: BulkOptions & { readonly exceptType?: string | undefined },
  ): Promise<BulkOutcome>;

  /** No job of the type is claimed; new jobs are accepted. */
  pause(type: string): Promise<void>;
  /** No new job is accepted (`TASK_TYPE_DRAINING`); existing jobs are processed. */
  drain(type: string): Promise<void>;
  /** Reverts `pause` and `drain`. */
  resume(type: string): Promise<void>;
  modes(): Promise<Readonly<Record<string, TypeMode>>>;

  claim(options: ClaimOptions): Promise<readonly ClaimedTask[]>;
  heartbeat(request: HeartbeatRequest): Promise<readonly ClaimState[]>;
  workers(): Promise<readonly WorkerInfo[]>;
  /** The worker has stopped: other workers may take its jobs immediately. */
  leave(worker: string): Promise<void>;

  types(): readonly TaskType[];
  /** Adds and changes types; types that are missing accept no new jobs. */
  setTypes(types: readonly TaskType[]): void;
}
