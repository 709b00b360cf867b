// Jobs for workers of any process, by queue name. A job references data in the store. A queue may lose jobs and may
// deliver a job twice: users need a sweeper, and idempotent work.

export interface NewJob {
  /** Letters, digits, `.`, `_`, `-`, and not only digits. An existing id is not added again. */
  readonly id: string;
  readonly name: string;
  /** JSON with ids, not the data itself. */
  readonly data: object;
  /** From 1, lowest first; jobs without a priority come before all others. */
  readonly priority?: number | undefined;
  readonly delayMs?: number | undefined;
  /** How many finished jobs are kept for inspection. Default: 100 completed, 50 failed. */
  readonly removeOnComplete?: number | undefined;
  readonly removeOnFail?: number | undefined;
}

export interface Job {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
}

/** `waiting`, `delayed` and `active` jobs are live. */
export type JobState = 'waiting' | 'delayed' | 'active' | 'completed' | 'failed';

/** Undefined: done. A delay: delivered again after it. A thrown error: failed permanently. */
export type JobOutcome = { readonly delayMs: number } | undefined;

export type JobHandler = (
  job: Job,
  context: { readonly signal: AbortSignal },
) => Promise<JobOutcome>;

export interface WorkOptions {
  readonly concurrency: number;
  /** Stops the work. */
  readonly signal: AbortSignal;
}

export const workLimits = {
  jobIdCharsMax: 200,
  dataBytesMax: 65_536,
  removeOnComplete: 100,
  removeOnFail: 50,
  /** Deliveries of one job, because a job that kills the process each time must not be repeated forever. */
  startsMax: 100,
  priorityMax: 2_097_152,
} as const;

/**
 * One queue. A job is delivered once, and again only if its handler requested a delay or its process died; the
 * number of attempts is up to the caller.
 *
 * @example
 * import { openRedis } from 'millrace/engines/redis';
 *
 * await using redis = await openRedis('redis://localhost:6379');
 * const queue = redis.queue('MessageRequestQueue');
 * await queue.add({ id: 'core.r-1.1', name: 'send-message-request', data: { messageRequestId: 'r-1' } });
 */
export interface WorkQueue extends AsyncDisposable {
  readonly name: string;
  add(job: NewJob): Promise<void>;
  /** Undefined: unknown or already removed. */
  state(id: string): Promise<JobState | undefined>;
  /** Runs until the signal fires and the running handlers have ended. */
  work(handle: JobHandler, options: WorkOptions): Promise<void>;
}
