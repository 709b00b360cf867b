// The port of an engine: records with compare-and-set, claims, and the signals of a change. All rules of a job's
// lifecycle are above it (`rules/`); an engine itself only decides which job is next, because that must happen
// in the operation that claims.
//
// Rules for every call:
// - Calls are batches, in as few round trips as possible: one script per type in Redis, one commit in SQLite.
//   Items are independent: a stale item does not affect the others.
// - `nowMs` is the caller's clock. An engine uses no other clock, so that tests can control the time.
// - While the engine is unreachable, a call rejects within seconds with a retryable `TASKS_UNAVAILABLE`. The change
//   may have happened. Repeating it is safe: `enqueue` by the id of the job, a change by its guard (it is then
//   `stale`, and the record shows the change).
// - Signals are stored in the streams and the envelope of the bus. With `atomicSignals` the same operation stores
//   record and signals; otherwise the signals follow before the call resolves. A signal whose id is already in its stream is
//   not stored again. If the process dies in between, `repair` stores it later.
// - The group `<type>-workers` of a queue stream belongs to the engine: it acknowledges claimed jobs, so that the
//   bus can trim the stream. Other groups are ordinary readers.

import type { TokenBucket } from '../foundation/token-bucket.ts';
import type { StoredTask, TaskFields, TaskHead, TaskRef, TaskState } from './task-job.ts';
import type { TaskSignal } from './task-signal.ts';

/** Differences between engines; the conformance suite skips cases by these names. */
export interface TaskCapabilities {
  /** Jobs survive a restart. */
  readonly durable: boolean;
  /** Several processes share the jobs. */
  readonly crossProcess: boolean;
  /** A record and its queue signal change atomically. Without it, the sweeper repairs lost signals. */
  readonly atomicSignals: boolean;
  /** Rates and concurrency keys are exact over all processes; without it: approximate. */
  readonly exactLimits: boolean;
  /** Priority and the turns of tenants hold for all due jobs; without it: for those that a process has seen. */
  readonly exactOrder: boolean;
}

export interface EnqueueEntry {
  /** `revision` and `fence` are 1 and 0. */
  readonly head: TaskHead;
  readonly fields: TaskFields;
  /** The job is not stored if a job of this type has this key and the time is not over. */
  readonly dedupe: { readonly key: string; readonly untilMs: number } | undefined;
  readonly signals: readonly TaskSignal[];
}

export type EnqueueOutcome =
  | { readonly kind: 'enqueued' }
  /** A job with this id or this dedupe key exists: this is its id. Nothing was changed. */
  | { readonly kind: 'exists'; readonly id: string }
  /** The type accepts no new jobs. */
  | { readonly kind: 'draining' };

/**
 * `fence`: the job must be running under this fence. `revision`: the job must be unchanged since this revision.
 * At least one is given; if both are given, both must hold.
 */
export interface TaskGuard {
  readonly fence?: number | undefined;
  readonly revision?: number | undefined;
}

/** The fields that a change may set; the others are derived or constant. */
export type HeadChange = Partial<
  Pick<
    TaskHead,
    | 'state'
    | 'fence'
    | 'priority'
    | 'dueAtMs'
    | 'failures'
    | 'worker'
    | 'deadlineMs'
    | 'cancelAtMs'
    | 'endedAtMs'
  >
>;

export interface TaskChange extends TaskRef {
  readonly guard: TaskGuard;
  readonly head: HeadChange;
  /** Set, or removed (`null`); other fields stay. */
  readonly fields: Readonly<Record<string, string | null>>;
  readonly signals: readonly TaskSignal[];
  /** The person that the job is about: `fields` are encrypted before the engine gets them. */
  readonly subject?: string | undefined;
}

export type ChangeOutcome =
  | { readonly kind: 'done'; readonly revision: number }
  /** The guard did not hold: nothing was changed. `head`: the current one; undefined: the job does not exist. */
  | { readonly kind: 'stale'; readonly head: TaskHead | undefined };

/** Allows `count` claims per `perMs`, as a token bucket (`takeTokens`). */
export interface RateRule extends TokenBucket {
  /** One bucket per tenant instead of one for the type. */
  readonly isPerTenant: boolean;
}

export interface ClaimRule {
  readonly type: string;
  /** The maximum number of jobs of this type. */
  readonly limit: number;
  /** The claimed jobs get the deadline `nowMs` + this. */
  readonly deadlineAfterMs: number;
  readonly rate: RateRule | undefined;
  /** The most jobs of one `concurrencyKey` that run at once over all workers; undefined: no limit. */
  readonly keyLimit: number | undefined;
}

export interface ClaimRequest {
  /** Unique for each start of a process; a claim marks it alive until `aliveUntilMs`, like `beat`. */
  readonly worker: string;
  readonly aliveUntilMs: number;
  /** Types are served in turns: a backlog of one type does not delay the others. */
  readonly rules: readonly ClaimRule[];
  /** The maximum number of jobs over all types. */
  readonly limit: number;
  readonly nowMs: number;
}

export interface ClaimWait {
  /** How long to wait for the first job; 0: only jobs that are due now. */
  readonly waitMs: number;
  /** Ends the wait with `ABORTED`. Jobs that are already claimed are returned. */
  readonly signal: AbortSignal;
  /** Runs each search for jobs, for example when there is memory for them. It does not run while the claim waits. */
  readonly aroundClaim?: (<Result>(search: () => Promise<Result>) => Promise<Result>) | undefined;
}

export interface TaskFilter {
  readonly type?: string | undefined;
  readonly states?: readonly TaskState[] | undefined;
  readonly tenant?: string | undefined;
  /** Labels of the form `name=value`; all must match. */
  readonly labels?: readonly string[] | undefined;
  readonly parentId?: string | undefined;
  readonly enqueuedFromMs?: number | undefined;
  readonly enqueuedBeforeMs?: number | undefined;
  readonly updatedFromMs?: number | undefined;
  readonly updatedBeforeMs?: number | undefined;
}

export interface TaskPageQuery {
  readonly cursor: string | undefined;
  readonly limit: number;
  /** The page ends with the job whose fields reach this number of bytes; undefined: no limit. */
  readonly bytesMax?: number | undefined;
}

export interface TaskListing {
  readonly tasks: readonly StoredTask[];
  /** The start of the next page; undefined: this is the last page. */
  readonly cursor: string | undefined;
}

/** The number of jobs of a type in each state. */
export interface TypeCount {
  readonly type: string;
  readonly states: Readonly<Record<TaskState, number>>;
}

export type TypeMode = 'open' | 'paused' | 'draining';

export interface WorkerBeat {
  readonly worker: string;
  readonly aliveUntilMs: number;
  /** Shown in lists of workers: types, host, start time. JSON. */
  readonly about?: string | undefined;
}

/**
 * How another thread reports that a worker is alive while the main thread is busy: it imports `module` and calls
 * its export `openTaskBeat(settings)`, which returns a `BeatConnection`.
 */
export interface BeatThread {
  readonly module: string;
  readonly settings: unknown;
}

export interface BeatConnection extends AsyncDisposable {
  beat(beat: WorkerBeat): Promise<void>;
}

export interface TaskEngine extends AsyncDisposable {
  readonly capabilities: TaskCapabilities;
  /** Undefined: heartbeats from another thread are not supported. */
  readonly beatThread: BeatThread | undefined;
  /**
   * Concurrent calls of `changeAndClaim`, so that the engine and the process work in parallel; no two of them change the
   * same job. Default: 1.
   */
  readonly callsAtOnce?: number | undefined;

  /** Each job with its signals, or not at all. An existing id returns `exists`, in any state of that job. */
  enqueue(entries: readonly EnqueueEntry[], nowMs: number): Promise<readonly EnqueueOutcome[]>;

  /**
   * Changes jobs, then claims in the same round trip (like `claim`, without waiting). When a job leaves the state
   * `running`, the engine clears its worker and frees its concurrency key. `updatedAtMs` becomes `nowMs`, and
   * `revision` grows by one.
   */
  changeAndClaim(
    changes: readonly TaskChange[],
    claim: ClaimRequest | undefined,
    nowMs: number,
  ): Promise<{
    readonly outcomes: readonly ChangeOutcome[];
    readonly claimed: readonly StoredTask[];
  }>;

  /**
   * Claims due jobs (`dueAtMs <= nowMs`; `scheduled`, `queued` or `waiting`) of types that are not paused, within the
   * rules. Order: highest priority; then tenants in turns, the least recently served first; within a tenant by due
   * time, then by enqueue time, then by id (ids without a key grow). A claimed job is `running`, with `worker`,
   * `claimedAtMs`, `deadlineMs`, the next fence and revision, and is returned with all fields. The wait ends when a
   * job becomes due, is freed by a rate or a key, or is enqueued by any process. Returns an empty list if there is
   * none in time.
   */
  claim(request: ClaimRequest, wait: ClaimWait): Promise<readonly StoredTask[]>;

  /** Returns jobs with all fields, in the order of the request. */
  get(refs: readonly TaskRef[]): Promise<readonly (StoredTask | undefined)[]>;
  /** Only the heads: cheap enough to read all claimed jobs of a worker every second. */
  heads(refs: readonly TaskRef[]): Promise<readonly (TaskHead | undefined)[]>;
  /**
   * With at least the fields `info` and `run`. Newest first by `enqueuedAtMs`, then by id; a cursor stays valid
   * while jobs are added and removed.
   */
  list(filter: TaskFilter, page: TaskPageQuery): Promise<TaskListing>;
  /** The job counts of all types that have or had jobs. */
  counts(): Promise<readonly TypeCount[]>;

  /** Marks the worker alive until `aliveUntilMs`; it keeps its jobs. */
  beat(beat: WorkerBeat): Promise<void>;
  /** Including workers that are no longer alive, until `forgetWorker`. */
  workers(): Promise<readonly WorkerBeat[]>;
  /** The worker has left: `overdue` returns its remaining jobs immediately. */
  forgetWorker(worker: string): Promise<void>;

  /**
   * Running jobs to take away from their workers: deadline or cancel time is over, or the worker is not alive or
   * unknown. With all fields. Never a job of a live worker within its deadline.
   */
  overdue(request: {
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<readonly StoredTask[]>;
  /** Due `scheduled` jobs: the sweeper makes them `queued`, which publishes a signal. */
  dueScheduled(request: {
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<readonly StoredTask[]>;
  /** Jobs that ended before this, for retention. */
  endedBefore(request: {
    readonly type: string;
    readonly beforeMs: number;
    readonly limit: number;
  }): Promise<readonly TaskRef[]>;
  /** Removes ended jobs only. Returns how many existed. */
  remove(refs: readonly TaskRef[]): Promise<number>;
  /** Removes expired dedupe keys and unused concurrency keys. */
  tidy(nowMs: number): Promise<void>;

  setMode(type: string, mode: TypeMode): Promise<void>;
  /** The modes of types that are not `open`. */
  modes(): Promise<readonly { readonly type: string; readonly mode: TypeMode }[]>;

  /**
   * Stores the signals whose ids are missing in their streams, regardless of their age. Returns how many.
   */
  repair(signals: readonly TaskSignal[], nowMs: number): Promise<number>;
}
