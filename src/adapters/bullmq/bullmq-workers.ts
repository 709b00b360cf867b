// The workers of one process: one of BullMQ's for each queue, opened as queues appear.

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
import type { RedisClient } from '../redis/redis-connection.ts';
import { redisUnavailable } from '../redis/redis-error.ts';
import { keepCopies } from './patient-client.ts';

export interface BullmqWork extends WorkOptions {
  readonly handle: (job: DeliveryJob) => Promise<void>;
  readonly createWorker: (
    name: string,
    processor: (job: { readonly name: string; readonly data: unknown }) => Promise<void>,
    options: WorkerOptions,
  ) => Worker;
  /** Of this work alone; ended with it. */
  readonly client: RedisClient;
  readonly registered: () => Promise<readonly string[]>;
  readonly prefix: string;
  readonly perTenant: boolean;
  readonly discoverMs: number;
  readonly lockMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
}

/** When a worker ends, Redis is away if it does not answer for so long. */
const awayMs = 2_000;
const reconnectMs = 1_000;

export async function runBullmqWorkers(work: BullmqWork): Promise<void> {
  const { types, signal, client, clock, observer, perTenant } = work;
  const endCopies = keepCopies(client);
  const workers = new Map<string, Worker>();
  const running = new Set<Promise<void>>();
  const handle = (job: DeliveryJob): Promise<void> => {
    const done = work.handle(job).finally(() => running.delete(done));
    running.add(done);
    return done;
  };
  const known = perTenant ? [] : types.filter((type) => !isPattern(type));
  const names = known.map((integrationType) => deliveryQueueName({ integrationType }, false));
  const needsLook = perTenant || types.some(isPattern);

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
        if (needsLook) for (const name of await work.registered()) if (fits(name)) open(name);
      } catch (error) {
        // Told where the connection is watched; the next look is soon.
        if (!redisUnavailable(error).retryable) observer.log?.error({ err: error }, 'no queues');
      }
      const lookMs = needsLook ? work.discoverMs : 3_600_000;
      // Rejects only when the signal fires, and then the loop ends.
      await clock.sleep(lookMs, signal).catch(() => undefined);
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
      observer.log?.error({ queue: name, eventType }, 'a job that is not of the outbox');
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
    if (!redisUnavailable(err).retryable) observer.log?.warn({ queue: name, err }, 'queue worker');
  });
  return worker;
}

/** The client ends with them. */
export async function closeWorkers(
  workers: readonly Worker[],
  client: RedisClient,
  running: ReadonlySet<Promise<void>>,
): Promise<void> {
  // From here on they fetch nothing more.
  await Promise.allSettled(workers.map((worker) => worker.pause(true)));
  if (await isThere(client)) {
    await Promise.allSettled(workers.map((worker) => worker.close()));
  } else {
    // They would wait for connections to end that are on their way back. What is not acknowledged is handed
    // out again.
    while (running.size > 0) await Promise.allSettled(running);
    await Promise.allSettled(workers.map((worker) => worker.close(true)));
  }
  client.disconnect();
}

function isThere(client: RedisClient): Promise<boolean> {
  const answer = client.ping().then(
    () => true,
    () => false,
  );
  return withinTime(answer, { ms: awayMs, late: () => false });
}
