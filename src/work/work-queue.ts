// Jobs for workers of any process, by queue name. A job references data in the store. A queue may lose jobs and may
// deliver a job twice: users need a sweeper, and idempotent work.

export interface NewJob {
  /** Any visible characters except `:`, and not only digits. An id that the queue still has is not added again. */
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
  /** The name of the queue. */
  readonly queue: string;
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
  /** Names of queues, or patterns of them: `mails`, `mq:{shop}:mail-*`. Matching new queues are found while it runs. */
  readonly queues: readonly string[];
  /** Per queue. */
  readonly concurrency: number;
  /** Stops the work. */
  readonly signal: AbortSignal;
  /** When a job of a dead process is delivered again. It is renewed while the handler runs. Default: 15 s. */
  readonly leaseMs?: number | undefined;
}

export interface WaitingJobs {
  readonly queue: string;
  readonly ids: readonly string[];
}

export const workLimits = {
  queueNameCharsMax: 1_000,
  jobIdCharsMax: 200,
  dataBytesMax: 65_536,
  removeOnComplete: 100,
  removeOnFail: 50,
  leaseMsDefault: 15_000,
  /** Deliveries of one job, because a job that kills the process each time must not be repeated forever. */
  startsMax: 100,
  priorityMax: 2_097_152,
} as const;

/**
 * The queues of one engine. A job is delivered once, and again only if its handler requested a delay or its process
 * died; the number of attempts is up to the caller. In Redis, the part of a queue's name before the last colon is the
 * prefix of its keys (`redisKeys.queue`). A pattern has a `*` after that colon, which matches any characters.
 *
 * @example
 * import { openRedis } from 'millrace/engines/redis';
 *
 * await using redis = await openRedis('redis://localhost:6379');
 * const job = { id: 'core.r-1.1', name: 'send-message-request', data: { messageRequestId: 'r-1' } };
 * await redis.queue.add('MessageRequestQueue', [job]);
 */
export interface WorkQueue extends AsyncDisposable {
  /**
   * Adds the jobs in order, and returns how many of them the queue has taken: with `waitingMax`, the first ones, until
   * so many wait. Rejects if it is unknown which jobs were taken.
   */
  add(
    queue: string,
    jobs: readonly NewJob[],
    options?: { readonly waitingMax?: number | undefined },
  ): Promise<number>;
  /** Undefined: unknown or already removed. */
  state(queue: string, id: string): Promise<JobState | undefined>;
  /** Runs until the signal fires and the running handlers have ended. */
  work(handle: JobHandler, options: WorkOptions): Promise<void>;
  /** How many jobs of one queue are due and not started. */
  depth(queue: string): Promise<number>;
  /** Jobs that are due and that no worker has started, queue by queue. */
  waiting(queues: string): AsyncIterable<WaitingJobs>;
  /** Notifies the listeners of a channel, on a server also those of other processes. It may get lost. */
  nudge(channel: string): void;
  /** The returned function removes the listener. */
  onNudge(channel: string, listener: () => void): () => void;
}
