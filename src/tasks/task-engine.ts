// What an engine brings: records with compare-and-set, claims, and the signals that go with them. All
// rules of a job's life stand above this once (decide-step.ts, decide-end.ts, decide-queued.ts); what an
// engine decides by itself is who is next, because that must happen in the step that claims.
//
// Rules for every call:
// - It comes in batches, and an engine makes as few round trips of one as it can: one script for each type
//   in Redis, one commit in SQLite. Each item counts on its own: one that is stale stops no other.
// - `nowMs` is the caller's clock, and the only one: an engine asks no other, so that tests may move it.
// - While the engine cannot be reached a call rejects with a retryable `TASKS_UNAVAILABLE`, within seconds.
//   After that a change may or may not have happened. To repeat it is safe: `enqueue` by the job's id, a
//   change by its guard (then it is `stale`, and the record shows that it had happened).
// - Signals are stored in the streams of the bus, in the bus's own envelope, in the step that changes the
//   record (`atomicSignals`), or else after it and before the call resolves. A signal whose id is in its
//   stream already is not stored again. Killed in between, `repair` brings it later.
// - The group `<type>-workers` of a queue stream is the engine's: it acks what it hands out, so that the
//   bus may trim the stream. Other groups are readers like all others.

import type { TokenBucket } from '../foundation/token-bucket.ts';
import type { StoredTask, TaskFields, TaskHead, TaskRef, TaskState } from './task-job.ts';
import type { TaskSignal } from './task-signal.ts';

/** Where engines truly differ; the suite skips what one does not have, by these names. */
export interface TaskCapabilities {
  /** Survives a restart. */
  readonly durable: boolean;
  /** Other processes have the same jobs. */
  readonly crossProcess: boolean;
  /** A record and its queue signal change in one step. Without it the sweeper looks for lost ones. */
  readonly atomicSignals: boolean;
  /** Rates and concurrency keys hold over all processes, exactly; without it: about. */
  readonly exactLimits: boolean;
  /** Priority and turns of tenants hold over all that is due; without it: over what a process has seen. */
  readonly exactOrder: boolean;
}

export interface EnqueueEntry {
  /** `revision` and `fence` are 1 and 0. */
  readonly head: TaskHead;
  readonly fields: TaskFields;
  /** Another job of this type with this key, not yet over: this one is not stored. */
  readonly dedupe: { readonly key: string; readonly untilMs: number } | undefined;
  readonly signals: readonly TaskSignal[];
}

export type EnqueueOutcome =
  | { readonly kind: 'enqueued' }
  /** A job with this id, or with this dedupe key, is there: this is its id. Nothing was changed. */
  | { readonly kind: 'exists'; readonly id: string }
  /** The type takes no new jobs. */
  | { readonly kind: 'draining' };

/**
 * `fence`: only while the job runs, under this fence. `revision`: only if nobody changed it since. One of
 * them is given, or both: then both must hold.
 */
export interface TaskGuard {
  readonly fence?: number | undefined;
  readonly revision?: number | undefined;
}

/** What a change may set; the rest of a head follows from it or never changes. */
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
  /** Set, or removed (`null`); the others stay. */
  readonly fields: Readonly<Record<string, string | null>>;
  readonly signals: readonly TaskSignal[];
  /**
   * By whoever holds it: the job as it was, and as it is to be. What nobody else has changed since (its revision
   * tells) may be written whole; else `head` and `fields` are what is changed.
   */
  readonly held?: { readonly before: TaskHead; readonly after: StoredTask } | undefined;
}

export type ChangeOutcome =
  | { readonly kind: 'done'; readonly revision: number }
  /** The guard did not hold: nothing was changed. `head`: as it is; undefined: there is none. */
  | { readonly kind: 'stale'; readonly head: TaskHead | undefined };

/** At most `count` claims within `perMs`, limited by `takeTokens`. */
export interface RateRule extends TokenBucket {
  /** One bucket per tenant, not one per type. */
  readonly isPerTenant: boolean;
}

export interface ClaimRule {
  readonly type: string;
  /** At most so many of this type. */
  readonly limit: number;
  /** Becomes `deadlineMs` of what is claimed: `nowMs` + this. */
  readonly deadlineAfterMs: number;
  readonly rate: RateRule | undefined;
  /** So many of one `concurrencyKey` run at once, over all workers; undefined: no bound. */
  readonly keyLimit: number | undefined;
  /**
   * Whoever enqueues may give it to a worker that waits, before that knows of it. Lost on the way, it is lost
   * like one whose worker is gone: not for types that fail then.
   */
  readonly mayBeHanded: boolean;
}

export interface ClaimRequest {
  /** Unique for each start of a process; it counts as alive until `aliveUntilMs`, as after `beat`. */
  readonly worker: string;
  readonly aliveUntilMs: number;
  /** In turns: no type waits behind the backlog of another. */
  readonly rules: readonly ClaimRule[];
  /** Of all types together. */
  readonly limit: number;
  readonly nowMs: number;
}

export interface ClaimWait {
  /** How long to wait for the first one; 0: what is due now. */
  readonly waitMs: number;
  /** It has other jobs to do: what comes meanwhile is better with somebody who has none. */
  readonly isBusy: boolean;
  /** Ends the wait with `ABORTED`. What was claimed by then is returned, never forgotten. */
  readonly signal: AbortSignal;
}

export interface TaskFilter {
  readonly type?: string | undefined;
  readonly states?: readonly TaskState[] | undefined;
  readonly tenant?: string | undefined;
  /** All of them: `name=value`. */
  readonly labels?: readonly string[] | undefined;
  readonly parentId?: string | undefined;
  readonly enqueuedFromMs?: number | undefined;
  readonly enqueuedBeforeMs?: number | undefined;
  readonly updatedFromMs?: number | undefined;
  readonly updatedBeforeMs?: number | undefined;
}

export interface TaskListing {
  readonly tasks: readonly StoredTask[];
  /** Where the next page begins; undefined: there is none. */
  readonly cursor: string | undefined;
}

/** How many of a type are in each state. */
export interface TypeCount {
  readonly type: string;
  readonly states: Readonly<Record<TaskState, number>>;
}

export type TypeMode = 'open' | 'paused' | 'draining';

export interface WorkerBeat {
  readonly worker: string;
  readonly aliveUntilMs: number;
  /** Shown to whoever asks who works: types, host, since when. JSON. */
  readonly about?: string | undefined;
}

/**
 * How another thread may say that a worker is alive, while the main one is busy: it imports `module`
 * and calls its export `openTaskBeat(settings)`, which gives a `BeatConnection`.
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
  /** Undefined: there is no other thread to beat from. */
  readonly beatThread: BeatThread | undefined;
  /**
   * Calls of `exchange` that a process keeps under way, so that the engine works while the process does;
   * none of them about the same job. Default: 1.
   */
  readonly callsAtOnce?: number | undefined;

  /** Each job with its signals, or not at all. An id that is there: `exists`, whatever became of it. */
  enqueue(entries: readonly EnqueueEntry[], nowMs: number): Promise<readonly EnqueueOutcome[]>;

  /**
   * Changes jobs, then claims in the same round trip if there is room (`claim`, which does not wait).
   * A job that is no longer `running` after a change has no worker, and its concurrency key is free for
   * the next; the engine sees to both. `updatedAtMs` becomes `nowMs`, `revision` one more.
   */
  exchange(
    changes: readonly TaskChange[],
    claim: ClaimRequest | undefined,
    nowMs: number,
  ): Promise<{
    readonly outcomes: readonly ChangeOutcome[];
    readonly claimed: readonly StoredTask[];
  }>;

  /**
   * Takes what is due (`dueAtMs <= nowMs`; `scheduled`, `queued` or `waiting`), of types that are not
   * paused, within the rules. The highest priority first; of those, tenants in turns, the one that was
   * served longest ago first; of a tenant what was due first, then what was enqueued first, then by id
   * (ids that come from no key grow). A job becomes `running` with `worker`, `claimedAtMs`, `deadlineMs`, the next fence and revision, and comes with all
   * its fields. What comes due during the wait, or is freed by a rate or a key, ends the wait; whatever
   * another process enqueues, too. Nothing in time: an empty list.
   */
  claim(request: ClaimRequest, wait: ClaimWait): Promise<readonly StoredTask[]>;

  /** With all fields, in the order asked for. */
  get(refs: readonly TaskRef[]): Promise<readonly (StoredTask | undefined)[]>;
  /** The heads alone: cheap enough to ask for everything that a worker holds, each second. */
  heads(refs: readonly TaskRef[]): Promise<readonly (TaskHead | undefined)[]>;
  /**
   * With the fields `info` and `run` at least. Newest first by `enqueuedAtMs`, then by id; a cursor that
   * was given out stays good while jobs come and go.
   */
  list(
    filter: TaskFilter,
    page: { readonly cursor: string | undefined; readonly limit: number },
  ): Promise<TaskListing>;
  /** Of types that have, or had, jobs. */
  counts(): Promise<readonly TypeCount[]>;

  /** The worker is alive until then; what it holds stays its own. */
  beat(beat: WorkerBeat): Promise<void>;
  /** Also those whose time is over, until they are forgotten (`forgetWorker`). */
  workers(): Promise<readonly WorkerBeat[]>;
  /** It is gone for good: what it still holds is found by `overdue` at once. */
  forgetWorker(worker: string): Promise<void>;

  /**
   * Running jobs that are to be taken away: their deadline or cancel time is over, or their worker is not
   * alive (or unknown). With all fields. Never a job of a live worker within its deadline.
   */
  overdue(request: {
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<readonly StoredTask[]>;
  /** `scheduled` jobs that are due: the sweeper makes them `queued`, which tells their stream. */
  dueScheduled(request: {
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<readonly StoredTask[]>;
  /** Ended before this: for retention. */
  endedBefore(request: {
    readonly type: string;
    readonly beforeMs: number;
    readonly limit: number;
  }): Promise<readonly TaskRef[]>;
  /** Only jobs that have ended. Returns how many were there. */
  remove(refs: readonly TaskRef[]): Promise<number>;
  /** What has no effect any more and is in the way: dedupe keys that are over, keys that nobody runs. */
  tidy(nowMs: number): Promise<void>;

  setMode(type: string, mode: TypeMode): Promise<void>;
  /** Of types that are not `open`. */
  modes(): Promise<readonly { readonly type: string; readonly mode: TypeMode }[]>;

  /**
   * Stores those of the signals that are not in their streams (by id), however long ago they were first
   * stored. Returns how many.
   */
  repair(signals: readonly TaskSignal[], nowMs: number): Promise<number>;
}
