// The workers of one process: one BullMQ worker for each queue, opened when the queue appears.

import type { Worker, WorkerOptions } from 'bullmq';
import type { Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';
import { withinTime } from '../../foundation/within-time.ts';
import {
  deliveryQueueName,
  fitsType,
  fromJobData,
  isPattern,
  parseDeliveryQueueName,
} from '../../outbox/delivery-job.ts';
import type { DeliveryJob, WorkOptions } from '../../outbox/delivery-queue.ts';
import { redisUnavailable, type RedisClient } from '../redis/connection/connection.ts';
import { trackCopies } from './blocking-client.ts';

export interface BullmqWork extends WorkOptions {
  readonly handle: (job: DeliveryJob) => Promise<void>;
  readonly createWorker: (
    name: string,
    processor: (job: { readonly name: string; readonly data: unknown }) => Promise<void>,
    options: WorkerOptions,
  ) => Worker;
  /** Used by this work only, and disconnected when it ends. */
  readonly client: RedisClient;
  readonly registered: () => Promise<readonly string[]>;
  readonly prefix: string;
  readonly perTenant: boolean;
  readonly discoverMs: number;
  readonly lockMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
}

/** Redis counts as unreachable if it does not answer a ping for this long when a worker ends. */
const pingMs = 2_000;
const reconnectMs = 1_000;

export async function runBullmqWorkers(work: BullmqWork): Promise<void> {
  const { types, signal, client, clock, observer, perTenant } = work;
  const endCopies = trackCopies(client);
  const workers = new Map<string, Worker>();
  const running = new Set<Promise<void>>();
  const handle = (job: DeliveryJob): Promise<void> => {
    const done = work.handle(job).finally(() => running.delete(done));
    running.add(done);
    return done;
  };
  const known = perTenant ? [] : types.filter((type) => !isPattern(type));
  const names = known.map((integrationType) => deliveryQueueName({ integrationType }, false));
  const needsDiscovery = perTenant || types.some(isPattern);

  const open = (name: string): void => {
    if (!workers.has(name)) workers.set(name, openWorker(name, { ...work, handle }));
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
      // Rejects only when the signal is aborted, which ends the loop.
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  } finally {
    await closeWorkers([...workers.values()], client, running);
    endCopies();
  }
}

function openWorker(name: string, work: BullmqWork): Worker {
  const { observer, handle } = work;
  const { integrationType = '' } = parseDeliveryQueueName(name) ?? {};
  const worker = work.createWorker(
    name,
    async ({ name: eventType, data }) => {
      const job = fromJobData(data, { integrationType, eventType });
      if (job !== undefined) return handle(job);
      observer.log?.error({ queue: name, eventType }, 'unknown job in outbox queue');
    },
    {
      connection: work.client,
      prefix: work.prefix,
      concurrency: work.concurrency,
      lockDuration: work.lockMs,
      stalledInterval: work.lockMs,
      runRetryDelay: reconnectMs,
    },
  );
  worker.on('error', (err) => {
    if (!redisUnavailable(err).retryable)
      observer.log?.warn({ queue: name, err }, 'queue worker failed');
  });
  return worker;
}

/** Closes the workers and disconnects the client. */
export async function closeWorkers(
  workers: readonly Worker[],
  client: RedisClient,
  running: ReadonlySet<Promise<void>>,
): Promise<void> {
  // A paused worker fetches no more jobs.
  await Promise.allSettled(workers.map((worker) => worker.pause(true)));
  if (await isReachable(client)) {
    await Promise.allSettled(workers.map((worker) => worker.close()));
  } else {
    // A normal close would wait for connections that are reconnecting. Unacknowledged jobs are delivered again.
    while (running.size > 0) await Promise.allSettled(running);
    await Promise.allSettled(workers.map((worker) => worker.close(true)));
  }
  client.disconnect();
}

function isReachable(client: RedisClient): Promise<boolean> {
  const answer = client.ping().then(
    () => true,
    () => false,
  );
  return withinTime(answer, { ms: pingMs, late: () => false });
}
