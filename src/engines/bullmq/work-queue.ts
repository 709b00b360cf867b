// A BullMQ queue under its plain name. The queue also processes jobs that other programs add with BullMQ itself.

import type { Job as BullmqJob, Queue } from 'bullmq';
import { systemClock } from '../../foundation/clock.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { createOngoingCalls } from '../../foundation/async/ongoing-calls.ts';
import { whenAborted } from '../../foundation/async/when-aborted.ts';
import { checkJob, checkQueueName } from '../../work/check-job.ts';
import { createRunningWork } from '../../work/running-work.ts';
import {
  workLimits,
  type JobHandler,
  type JobState,
  type WorkQueue,
} from '../../work/work-queue.ts';
import {
  connectRedis,
  type RedisClient,
  type RedisConnectionOptions,
} from '../redis/connection/connection.ts';
import { blockingClient, isCluster, trackCopies } from './blocking-client.ts';
import { withTimeout, closeWorkers, openWorker } from './workers.ts';

export interface BullmqWorkQueueOptions extends RedisConnectionOptions {
  readonly name: string;
  /** Must be the same in all programs that use the queue. Default: `bull`, and `{bull}` on a cluster. */
  readonly prefix?: string | undefined;
  /** Time after which BullMQ takes a job from a dead worker. Default: 30 s. */
  readonly lockMs?: number | undefined;
}

/** Maps BullMQ's job states to those of the port. */
const states: Readonly<Record<string, JobState>> = {
  waiting: 'waiting',
  prioritized: 'waiting',
  'waiting-children': 'waiting',
  delayed: 'delayed',
  active: 'active',
  completed: 'completed',
  failed: 'failed',
};

/**
 * A queue in one Redis or a Redis Cluster, by its URL or with a client of your own, which you close.
 *
 * @example
 * import { bullmqWorkQueue } from 'millrace/adapters/bullmq';
 *
 * await using queue = await bullmqWorkQueue('redis://localhost:6379', { name: 'MessageRequestQueue' });
 * await queue.add({ id: 'core.r-1.1', name: 'send-message-request', data: { messageRequestId: 'r-1' } });
 */
export async function bullmqWorkQueue(
  target: string | RedisClient,
  options: BullmqWorkQueueOptions,
): Promise<WorkQueue> {
  const { name, lockMs = 30_000, timeoutMs = 5_000 } = options;
  const { clock = systemClock, observer = silentObserver } = options;
  checkQueueName(name);
  const bullmq = await loadDriver('bullmq', () => import('bullmq'));
  const connection = await connectRedis(target, options);
  const { client } = connection;
  const { prefix = isCluster(client) ? '{bull}' : 'bull' } = options;
  const workers = createRunningWork();
  let producer: Queue | undefined;

  function queue(): Queue {
    if (producer !== undefined) return producer;
    producer = new bullmq.Queue(name, { connection: client, prefix });
    producer.on('error', () => undefined);
    return producer;
  }

  /** A producer that was opened during the loss of a connection never recovers, so a failure replaces it. */
  async function ask<T>(call: (each: Queue) => Promise<T>): Promise<T> {
    try {
      return await connection.ask(() => withTimeout(timeoutMs, call(queue()), clock));
    } catch (error) {
      const old = producer;
      producer = undefined;
      await old?.close().catch(() => undefined);
      throw error;
    }
  }

  async function process(
    handle: JobHandler,
    job: BullmqJob,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const outcome = await handle(
      { id: job.id ?? '', name: job.name, data: job.data as unknown },
      { signal },
    );
    if (outcome === undefined) return;
    await job.moveToDelayed(Math.ceil(clock.now() + outcome.delayMs), token);
    throw new bullmq.DelayedError();
  }

  async function work(handle: JobHandler, concurrency: number, signal: AbortSignal): Promise<void> {
    const own = blockingClient(client);
    const endCopies = trackCopies(own);
    const running = createOngoingCalls();
    const worker = openWorker(
      name,
      (job, token) => running.track(process(handle, job, token, signal)),
      {
        bullmq,
        client: own,
        prefix,
        concurrency,
        lockMs,
        stalledMax: workLimits.startsMax,
        observer,
      },
    );
    worker.on('failed', (job, err) => {
      observer.log?.warn({ queue: name, jobId: job?.id, err }, 'job failed');
    });
    try {
      await whenAborted(signal).aborted;
    } finally {
      await closeWorkers([worker], own, running);
      endCopies();
    }
  }

  return {
    name,
    async add(job) {
      checkJob(job);
      const { id, data, priority, delayMs } = job;
      await ask((each) =>
        each.add(job.name, data, {
          jobId: id,
          // The worker decides about retries.
          attempts: 1,
          removeOnComplete: job.removeOnComplete ?? workLimits.removeOnComplete,
          removeOnFail: job.removeOnFail ?? workLimits.removeOnFail,
          ...(priority === undefined ? {} : { priority }),
          ...(delayMs === undefined || delayMs === 0 ? {} : { delay: delayMs }),
        }),
      );
    },
    async state(id) {
      return states[await ask((each) => each.getJobState(id))];
    },
    work: (handle, { concurrency, signal }) =>
      workers.run(signal, (stop) => work(handle, concurrency, stop)),
    async [Symbol.asyncDispose]() {
      await workers.stop();
      await producer?.close().catch(() => undefined);
      await connection[Symbol.asyncDispose]();
    },
  };
}
