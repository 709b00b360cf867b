// Jobs for workers of any process, by the name of their queue: pointers to what the store knows. A queue may lose
// everything, and may hand a job out twice; whoever relies on it has a sweeper, and work that bears repeats.

export interface NewJob {
  /** Letters, digits, `.`, `_`, `-`, and not digits alone. One that is known already is not added again. */
  readonly id: string;
  readonly name: string;
  /** JSON; ids, not what they stand for. */
  readonly data: object;
  /** From 1, lower ones first; without one it goes before all that have one. */
  readonly priority?: number;
  readonly delayMs?: number;
  /** How many of the finished ones are kept to look at. Default: 100 completed, 50 failed. */
  readonly removeOnComplete?: number;
  readonly removeOnFail?: number;
}

export interface Job {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
}

/** `waiting`, `delayed` and `active` jobs are live: they will be handed out, or are. */
export type JobState = 'waiting' | 'delayed' | 'active' | 'completed' | 'failed';

/** Nothing: it is done. A delay: it waits, and is handed out again. To throw is to fail, once and for all. */
export type JobOutcome = { readonly delayMs: number } | undefined;

export type JobHandler = (
  job: Job,
  context: { readonly signal: AbortSignal },
) => Promise<JobOutcome>;

export interface WorkOptions {
  readonly concurrency: number;
  /** Ends the work: nothing more is handed out. */
  readonly signal: AbortSignal;
}

export const workLimits = {
  jobIdCharsMax: 200,
  dataBytesMax: 65_536,
  removeOnComplete: 100,
  removeOnFail: 50,
  /** Of one job: one that ends the process each time must not do so for ever. */
  startsMax: 100,
  priorityMax: 2_097_152,
} as const;

/**
 * One queue. Attempts are the caller's: a job is handed out once, and again only when it asked for a delay or
 * its process died.
 *
 * @example
 * import { openWorkQueue } from 'millrace/platform';
 *
 * await using queue = await openWorkQueue('redis://localhost:6379', { name: 'MessageRequestQueue' });
 * await queue.add({ id: 'core.r-1.1', name: 'send-message-request', data: { messageRequestId: 'r-1' } });
 */
export interface WorkQueue extends AsyncDisposable {
  readonly name: string;
  add(job: NewJob): Promise<void>;
  /** Undefined: it is not known, or not any more. */
  state(id: string): Promise<JobState | undefined>;
  /** Until the signal fires, and those that were handed out are done. */
  work(handle: JobHandler, options: WorkOptions): Promise<void>;
}
