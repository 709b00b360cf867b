// A BullMQ queue under its plain name. The queue also processes jobs that other programs add with BullMQ itself.

import type * as Bullmq from 'bullmq';
import { systemClock } from '../../../foundation/clock.ts';
import { silentObserver } from '../../../foundation/observer.ts';
import { createOngoingCalls } from '../../../foundation/async/ongoing-calls.ts';
import { whenAborted } from '../../../foundation/async/when-aborted.ts';
import { checkJob, checkQueueName } from '../../../work/check-job.ts';
import { createRunningWork } from '../../../work/running-work.ts';
import {
  workLimits,
  type JobHandler,
  type JobState,
  type WorkQueue,
} from '../../../work/work-queue.ts';
import {
  withTimeout,
  type RedisConnection,
  type RedisConnectionOptions,
} from '../connection/connection.ts';
import { blockingClient, isCluster, trackCopies } from './blocking-client.ts';
import { closeWorkers, loadBullmq, openWorker } from './workers.ts';

export interface WorkQueueOptions {
  /** Must be the same in all programs that use the queue. Default: `bull`, and `{bull}` on a cluster. */
  readonly prefix?: string | undefined;
  /** Time after which BullMQ takes a job from a dead worker. Default: 30 s. */
  readonly leaseMs?: number | undefined;
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

export function bullmqWorkQueue(
  connection: RedisConnection,
  name: string,
  options: WorkQueueOptions & RedisConnectionOptions = {},
): WorkQueue {
  const { leaseMs: lockMs = 30_000, timeoutMs = 5_000 } = options;
  const { clock = systemClock, observer = silentObserver } = options;
  const { client } = connection;
  const { prefix = isCluster(client) ? '{bull}' : 'bull' } = options;
  checkQueueName(name);
  const workers = createRunningWork();
  let producer: Bullmq.Queue | undefined;

  function openProducer(bullmq: typeof Bullmq): Bullmq.Queue {
    const opened = new bullmq.Queue(name, { connection: client, prefix });
    opened.on('error', () => undefined);
    return opened;
  }

  /** A producer that was opened during the loss of a connection never recovers, so a failure replaces it. */
  async function ask<T>(call: (queue: Bullmq.Queue) => Promise<T>): Promise<T> {
    const bullmq = await loadBullmq();
    try {
      return await connection.ask(() => {
        producer ??= openProducer(bullmq);
        return withTimeout(timeoutMs, call(producer), clock);
      });
    } catch (error) {
      const old = producer;
      producer = undefined;
      await old?.close().catch(() => undefined);
      throw error;
    }
  }

  async function work(handle: JobHandler, concurrency: number, signal: AbortSignal): Promise<void> {
    const bullmq = await loadBullmq();
    const own = blockingClient(client);
    const endCopies = trackCopies(own);
    const running = createOngoingCalls();

    const process = async (job: Bullmq.Job, token: string | undefined): Promise<void> => {
      const { id = '', name: jobName, data } = job as { id?: string; name: string; data: unknown };
      const outcome = await handle({ id, name: jobName, data }, { signal });
      if (outcome === undefined) return;
      await job.moveToDelayed(Math.ceil(clock.now() + outcome.delayMs), token);
      throw new bullmq.DelayedError();
    };

    const worker = openWorker(name, (job, token) => running.track(process(job, token)), {
      bullmq,
      client: own,
      prefix,
      concurrency,
      lockMs,
      stalledMax: workLimits.startsMax,
      observer,
    });
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
