// The workers of one process: one BullMQ worker for each queue, opened when the queue appears.

import type * as Bullmq from 'bullmq';
import type { Clock } from '../../../foundation/clock.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import type { Observer } from '../../../foundation/observer.ts';
import { createOngoingCalls, type OngoingCalls } from '../../../foundation/async/ongoing-calls.ts';
import { withinTime } from '../../../foundation/async/within-time.ts';
import {
  deliveryQueueName,
  fitsType,
  fromJobData,
  isPattern,
  parseDeliveryQueueName,
} from '../../../outbox/delivery-job.ts';
import type { DeliveryJob, WorkOptions } from '../../../outbox/delivery-queue.ts';
import { redisUnavailable, type RedisClient } from '../connection/connection.ts';
import { trackCopies } from './blocking-client.ts';

export interface BullmqWorkerOptions {
  readonly bullmq: typeof Bullmq;
  /** Used by these workers only, and disconnected when they stop. */
  readonly client: RedisClient;
  readonly prefix: string;
  readonly concurrency: number;
  readonly lockMs: number;
  /** The number of times that a job may lose its worker before the job fails. */
  readonly stalledMax: number;
  readonly observer: Observer;
}

interface BullmqWork extends BullmqWorkerOptions, WorkOptions {
  readonly handle: (job: DeliveryJob) => Promise<void>;
  readonly registered: () => Promise<readonly string[]>;
  readonly perTenant: boolean;
  readonly discoverMs: number;
  readonly clock: Clock;
}

/** Called before the first job is added or taken, because BullMQ is an optional package. */
export function loadBullmq(): Promise<typeof Bullmq> {
  return loadDriver('bullmq', () => import('bullmq'));
}

/** Redis counts as unreachable if it does not reply to a ping within this time when a worker stops. */
const pingMs = 2_000;
const reconnectMs = 1_000;

export async function runBullmqWorkers(work: BullmqWork): Promise<void> {
  const { types, signal, client, clock, observer, perTenant } = work;
  const endCopies = trackCopies(client);
  const workers = new Map<string, Bullmq.Worker>();
  const running = createOngoingCalls();
  const known = perTenant ? [] : types.filter((type) => !isPattern(type));
  const names = known.map((integrationType) => deliveryQueueName({ integrationType }, false));
  const needsDiscovery = perTenant || types.some(isPattern);

  const open = (name: string): void => {
    if (workers.has(name)) return;
    const { integrationType = '' } = parseDeliveryQueueName(name) ?? {};
    const process: Bullmq.Processor = async ({ name: eventType, data }) => {
      const job = fromJobData(data, { integrationType, eventType });
      if (job !== undefined) return running.track(work.handle(job));
      observer.log?.error({ queue: name, eventType }, 'unknown job in outbox queue');
    };
    workers.set(name, openWorker(name, process, work));
  };

  const fits = (name: string): boolean => {
    const address = parseDeliveryQueueName(name);
    return address !== undefined && fitsType(types, address.integrationType);
  };

  try {
    for (const name of names) open(name);
    while (!signal.aborted) {
      try {
        if (needsDiscovery) for (const name of await work.registered()) if (fits(name)) open(name);
      } catch (error) {
        // The connection reports outages; the next discovery follows soon.
        if (!redisUnavailable(error).retryable) {
          observer.log?.error({ err: error }, 'queue discovery failed');
        }
      }
      const waitMs = needsDiscovery ? work.discoverMs : 3_600_000;
      // Rejects only when the signal is aborted, which stops the loop.
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  } finally {
    await closeWorkers([...workers.values()], client, running);
    endCopies();
  }
}

export function openWorker(
  name: string,
  process: Bullmq.Processor,
  { bullmq, client, prefix, concurrency, lockMs, stalledMax, observer }: BullmqWorkerOptions,
): Bullmq.Worker {
  const worker = new bullmq.Worker(name, process, {
    connection: client,
    prefix,
    concurrency,
    lockDuration: lockMs,
    stalledInterval: lockMs,
    maxStalledCount: stalledMax,
    runRetryDelay: reconnectMs,
  });
  worker.on('error', (err) => {
    if (!redisUnavailable(err).retryable)
      observer.log?.warn({ queue: name, err }, 'queue worker failed');
  });
  return worker;
}

/** Closes the workers and disconnects the client. */
export async function closeWorkers(
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
