// What callers, workers of any language and administrators use: jobs of types, over any engine.

import type { Subjects } from '../contracts/subjects.ts';
import type { Clock } from '../foundation/clock.ts';
import type { Observer, TraceContext } from '../foundation/observer.ts';
import type { TaskChanges } from './task-changes.ts';
import type { DecideContext } from './rules/task-decision.ts';
import type { TaskCapabilities, TaskEngine, TypeCount, TypeMode } from './task-engine.ts';
import type { TaskState, TerminalState } from './task-job.ts';
import type { StepRecord, Task, TaskFailure } from './task-record.ts';
import type { SignalMaker } from './task-signal.ts';
import type { TaskType } from './task-type.ts';

export interface NewTask {
  readonly type: string;
  /** A JSON value, checked by the type's schema where the handler has one. */
  readonly payload: unknown;
  readonly tenant?: string | undefined;
  /**
   * Of two with the same key (of one tenant and type) the second is not stored: within the window, if
   * there is one (here or in the type), else as long as the first is kept.
   */
  readonly key?: string | undefined;
  /** 0: as long as the first is kept, whatever the type says. */
  readonly dedupeWindowMs?: number | undefined;
  /** 0 to 9, the highest first. Default: the type's, 5. */
  readonly priority?: number | undefined;
  readonly delayMs?: number | undefined;
  readonly runAt?: Date | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Default: by the rule of the type. */
  readonly concurrencyKey?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly trace?: TraceContext | undefined;
  readonly enqueuedBy?: string | undefined;
  /** The job that waits for it. */
  readonly parentId?: string | undefined;
}

export interface Enqueued {
  /** Of the job that is there now: with `isDuplicate`, of the first one. */
  readonly id: string;
  readonly isDuplicate: boolean;
}

/** Times: from then on, and before then. */
export interface TaskQuery {
  readonly type?: string | undefined;
  readonly state?: TaskState | readonly TaskState[] | undefined;
  readonly tenant?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly parentId?: string | undefined;
  readonly enqueuedFrom?: Date | undefined;
  readonly enqueuedBefore?: Date | undefined;
  readonly updatedFrom?: Date | undefined;
  readonly updatedBefore?: Date | undefined;
}

export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly cursor: string | undefined;
}

export interface BulkOutcome {
  readonly changed: number;
  /** They were in a state in which there is nothing to do, or had changed in between. */
  readonly skipped: number;
}

export interface BulkProgress extends BulkOutcome {
  /** How many there were when it began; undefined where the query asks for more than type and state. */
  readonly matching: number | undefined;
}

export interface BulkOptions {
  /** After each page. */
  readonly onProgress?: ((progress: BulkProgress) => void) | undefined;
  /** Ends it behind a page, with `ABORTED`; what was done stays done. */
  readonly signal?: AbortSignal | undefined;
}

/** One line of what happened to a job, in order. */
export interface TimelineEntry {
  readonly at: Date;
  readonly what: string;
  readonly step: string | undefined;
  readonly worker: string | undefined;
  readonly text: string | undefined;
}

export interface WorkerInfo {
  readonly worker: string;
  readonly aliveUntil: Date;
  readonly isAlive: boolean;
  readonly about: unknown;
}

/** What whoever holds a job shows with every call. Plain data: it may travel. */
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
  /** Types, and how many of each at most. */
  readonly types: Readonly<Record<string, number>>;
  /** Of all together. Default: as many as `types` allows, 100 at most. */
  readonly limit?: number | undefined;
  /** How long to wait for the first one. Default: 5 s; 0: what is due now. */
  readonly waitMs?: number | undefined;
  /** Alive for so long without another word. Default: 15 s. */
  readonly leaseMs?: number | undefined;
  /** It has other jobs to do: a job that comes while it waits is left to somebody who has none. Default: false. */
  readonly isBusy?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface HeartbeatRequest {
  readonly worker: string;
  readonly leaseMs?: number | undefined;
  /** What it holds; the answer tells what has become of each. */
  readonly tokens?: readonly TaskToken[] | undefined;
  /** Shown to whoever asks who works. */
  readonly about?: unknown;
}

/** `lost`: somebody else has it, or it has ended: stop, nothing of it is taken any more. */
export interface HeldState {
  readonly id: string;
  readonly state: 'held' | 'lost';
  /** It is to be cancelled: stop by then, and say `cancelled`. */
  readonly cancelAt: Date | undefined;
}

export interface StepStart {
  readonly name: string;
  readonly kind?: StepRecord['kind'] | undefined;
  /** Default: the type's. */
  readonly timeoutMs?: number | undefined;
}

export interface StepFinish {
  readonly name: string;
  readonly kind?: StepRecord['kind'] | undefined;
  readonly result?: unknown;
  /** It can be undone: if the job does not complete, it is to be (`undo:<name>`). */
  readonly isCompensable?: boolean | undefined;
}

export interface StepFailure {
  readonly name: string;
  readonly kind?: StepRecord['kind'] | undefined;
  readonly failure: TaskFailure;
  /** How often it is tried again within this attempt of the job. Default: 0. */
  readonly retries?: number | undefined;
  /** Default: by the type's backoff. */
  readonly retryAfterMs?: number | undefined;
}

/** `released`: the job waits, its worker is free; a claim brings it back with what it waited for. */
export type EventWait =
  | { readonly kind: 'event'; readonly payload: unknown }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'released' };

/** What became of a child. */
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
 * What a worker says of a job that it holds. Each call is durable when it resolves, and rejects with
 * `TASK_STALE` when the job is another's by now, or has ended.
 */
export interface TaskHolding {
  startStep(token: TaskToken, step: StepStart): Promise<void>;
  finishStep(token: TaskToken, step: StepFinish): Promise<void>;
  /** True: the job waits for the next try of the step, its worker is free. */
  failStep(token: TaskToken, step: StepFailure): Promise<{ readonly isRetried: boolean }>;
  progress(
    token: TaskToken,
    progress: { readonly percent: number; readonly message?: string | undefined },
  ): Promise<void>;
  /** `released`: the worker is free, the job is due again then. `over`: it has slept already, go on. */
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
  /** Enqueues them (each once, however often it is asked), and waits until all have ended. */
  runChildren(
    token: TaskToken,
    children: { readonly name: string; readonly tasks: readonly NewTask[] },
  ): Promise<ChildrenWait>;
  complete(token: TaskToken, result?: unknown): Promise<void>;
  /** The attempt failed: again after a while, or the end, by the rules of the type. */
  fail(
    token: TaskToken,
    failure: TaskFailure,
    options?: { readonly retryAfterMs?: number | undefined },
  ): Promise<void>;
  /** It stopped because it was to be cancelled. */
  cancelled(token: TaskToken): Promise<void>;
  /** Everything that `endsAs` asked for is undone. */
  compensated(token: TaskToken): Promise<void>;
  /** Gives it back untouched. */
  release(token: TaskToken): Promise<void>;
}

/** What the loops of this folder need in addition to the calls of `Tasks`. Not for applications. */
export interface TaskCore extends Pick<TaskChanges, 'change' | 'wakeParent'> {
  readonly engine: TaskEngine;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signals: SignalMaker;
  readonly subjects: Subjects<string>;
  readonly decideContext: (type: string) => DecideContext;
}

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
export interface Tasks extends TaskHolding, AsyncDisposable {
  readonly capabilities: TaskCapabilities;
  /** For `startWorkers`, `startTaskSweeper`, `startTaskOrchestrator` and `watchTaskTypes`: a wrapper passes it on. */
  readonly core: TaskCore;

  /** Resolves when it is stored. Rejects with `TASKS_UNAVAILABLE`: repeat it with the same key. */
  enqueue(task: NewTask): Promise<Enqueued>;
  /** In as few round trips as the engine can. All are checked before any is stored. */
  enqueueMany(tasks: readonly NewTask[]): Promise<readonly Enqueued[]>;

  get(id: string): Promise<Task | undefined>;
  /** Newest first. */
  list(
    query?: TaskQuery,
    page?: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
  ): Promise<TaskPage>;
  counts(): Promise<readonly TypeCount[]>;
  timeline(id: string): Promise<readonly TimelineEntry[]>;
  /** Resolves with the job when it has ended; `TASK_TIMEOUT` if it does not in time. */
  whenEnded(
    id: string,
    options?: {
      readonly timeoutMs?: number | undefined;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<Task>;

  /** One that runs is told, and ended by force after the deadline. False: there was nothing to cancel. */
  cancel(
    id: string,
    options?: { readonly reason?: string | undefined; readonly deadlineMs?: number | undefined },
  ): Promise<boolean>;
  /** One that has ended, again; finished steps stay finished, unless they come from `fromStep` on. */
  retry(id: string, options?: { readonly fromStep?: string | undefined }): Promise<boolean>;
  /** For whoever waits for it, now or later. False: the job has ended. */
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
  retryMany(query: TaskQuery, options?: BulkOptions): Promise<BulkOutcome>;

  /** No worker gets a job of the type; new ones are taken. */
  pause(type: string): Promise<void>;
  /** No new job is taken (`TASK_TYPE_DRAINING`); what is there is worked off. */
  drain(type: string): Promise<void>;
  /** Undoes both. */
  resume(type: string): Promise<void>;
  modes(): Promise<Readonly<Record<string, TypeMode>>>;

  claim(options: ClaimOptions): Promise<readonly ClaimedTask[]>;
  heartbeat(request: HeartbeatRequest): Promise<readonly HeldState[]>;
  workers(): Promise<readonly WorkerInfo[]>;
  /** The worker ends: what it still holds may go to others at once. */
  leave(worker: string): Promise<void>;

  types(): readonly TaskType[];
  /** New ones appear, changed ones count from now on, missing ones take no new jobs. */
  setTypes(types: readonly TaskType[]): void;
}
