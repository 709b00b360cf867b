// The workers of one process: one BullMQ worker for each queue, opened when the queue appears.

import type * as Bullmq from 'bullmq';
import { slept } from '../../../foundation/async/slept.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import type { Observer } from '../../../foundation/observer.ts';
import { createOngoingCalls, type OngoingCalls } from '../../../foundation/async/ongoing-calls.ts';
import { withinTime } from '../../../foundation/async/within-time.ts';
import { isPattern } from '../../../work/queue-name.ts';
import { workLimits, type JobHandler } from '../../../work/work-queue.ts';
import { redisUnavailable, type RedisClient } from '../connection/connection.ts';
import { trackCopies } from './blocking-client.ts';

export interface QueueAddress {
  /** The whole name. */
  readonly queue: string;
  readonly prefix: string;
  /** The part after the prefix. */
  readonly name: string;
}

export interface BullmqWork {
  readonly bullmq: typeof Bullmq;
  /** Used by these workers only, and disconnected when they stop. */
  readonly client: RedisClient;
  /** Finds the queues of a pattern. */
  readonly registered: (pattern: string) => Promise<readonly QueueAddress[]>;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly observer: Observer;
}

/** Called before the first job is added or taken, because BullMQ is an optional package. */
export function loadBullmq(): Promise<typeof Bullmq> {
  return loadDriver('bullmq', () => import('bullmq'));
}

/** Redis counts as unreachable if it does not reply to a ping within this time when a worker stops. */
const pingMs = 2_000;
const reconnectMs = 1_000;
/** How often workers check for new queues. */
const discoverMs = 250;

export async function runWorkers(
  handle: JobHandler,
  addresses: readonly QueueAddress[],
  work: BullmqWork,
): Promise<void> {
  const { signal, client, clock, observer } = work;
  const endCopies = trackCopies(client);
  const workers = new Map<string, Bullmq.Worker>();
  const running = createOngoingCalls();
  const patterns = addresses.map(({ queue }) => queue).filter(isPattern);

  const open = (address: QueueAddress): void => {
    const { queue } = address;
    if (workers.has(queue)) return;
    const process = async (job: Bullmq.Job, token: string | undefined): Promise<void> => {
      const { id = '', name, data } = job as { id?: string; name: string; data: unknown };
      const outcome = await handle({ queue, id, name, data }, { signal });
      if (outcome === undefined) return;
      await job.moveToDelayed(Math.ceil(clock.now() + outcome.delayMs), token);
      throw new work.bullmq.DelayedError();
    };
    workers.set(
      queue,
      openWorker(address, (job, token) => running.track(process(job, token)), work),
    );
  };

  try {
    for (const address of addresses) if (!isPattern(address.queue)) open(address);
    while (!signal.aborted) {
      try {
        for (const pattern of patterns)
          for (const each of await work.registered(pattern)) open(each);
      } catch (error) {
        // The connection reports outages; the next discovery follows soon.
        if (!redisUnavailable(error).retryable) {
          observer.log?.error({ err: error }, 'queue discovery failed');
        }
      }
      const waitMs = patterns.length === 0 ? 3_600_000 : discoverMs;
      await slept(clock, waitMs, signal);
    }
  } finally {
    await closeWorkers([...workers.values()], client, running);
    endCopies();
  }
}

function openWorker(
  { queue, prefix, name }: QueueAddress,
  process: Bullmq.Processor,
  { bullmq, client, concurrency, leaseMs, observer }: BullmqWork,
): Bullmq.Worker {
  // Redis rejects fractions.
  const beatMs = Math.ceil(leaseMs / 3);
  const worker = new bullmq.Worker(name, process, {
    connection: client,
    prefix,
    concurrency,
    lockDuration: leaseMs,
    lockRenewTime: beatMs,
    stalledInterval: beatMs,
    maxStalledCount: workLimits.startsMax,
    runRetryDelay: reconnectMs,
  });
  worker.on('error', (err) => {
    if (!redisUnavailable(err).retryable) observer.log?.warn({ queue, err }, 'queue worker failed');
  });
  worker.on('failed', (job, err) => {
    observer.log?.warn({ queue, jobId: job?.id, err }, 'job failed');
  });
  return worker;
}

/** Closes the workers and disconnects the client. */
async function closeWorkers(
  workers: readonly Bullmq.Worker[],
  client: RedisClient,
  running: OngoingCalls,
): Promise<void> {
  // A paused worker fetches no more jobs.
  await Promise.allSettled(workers.map((worker) => worker.pause(true)));
  if (await isReachable(client)) {
    await Promise.allSettled(workers.map((worker) => worker.close()));
  } else {
    // A normal close would wait for connections that are reconnecting. Unacknowledged jobs are delivered again.
    await running.settled();
    await Promise.allSettled(workers.map((worker) => worker.close(true)));
  }
  client.disconnect();
}

function isReachable(client: RedisClient): Promise<boolean> {
  const ping = client.ping().then(
    () => true,
    () => false,
  );
  return withinTime(ping, { ms: pingMs, late: () => false });
}
