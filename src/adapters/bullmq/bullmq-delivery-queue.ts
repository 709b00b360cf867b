// Delivery queues on BullMQ: one for each integration type, or for each type and tenant. Redis may lose them:
// the ledger is what remembers, and what decides whether a job is still worth anything.

import type { Queue } from 'bullmq';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { silentObserver } from '../../foundation/observer.ts';
import { withinTime } from '../../foundation/within-time.ts';
import {
  claimOfJobId,
  deliveryJobId,
  deliveryQueueName,
  toJobData,
} from '../../outbox/delivery-job.ts';
import type { DeliveryJob, DeliveryQueue, Offered } from '../../outbox/delivery-queue.ts';
import {
  connectRedis,
  type RedisClient,
  type RedisConnectionOptions,
} from '../redis/redis-connection.ts';
import { runBullmqWorkers } from './bullmq-workers.ts';
import { createNudges } from './nudges.ts';
import { isCluster, patientClient } from './patient-client.ts';

export interface BullmqQueueOptions extends RedisConnectionOptions {
  /**
   * Where the keys of all queues begin; its hash tag keeps them in one slot of a cluster. The same for all
   * processes. Default: `mq:{outbox}`.
   */
  readonly prefix?: string;
  /** A queue for each tenant of a type. The same for all processes. Default: no. */
  readonly perTenant?: boolean;
  /** How soon workers find new queues. Default: 1 s. */
  readonly discoverMs?: number;
  /** After which BullMQ takes a job from a worker that died. Default: 30 s. */
  readonly lockMs?: number;
}

/** Of what BullMQ keeps for people to look at; the ledger has it all. */
const kept = { failedJobs: 100, events: 100 };

/**
 * Queues in one Redis or a Redis Cluster, by its URL or with a client of your own, which stays yours to close.
 *
 * @example
 * import { bullmqDeliveryQueue } from 'millrace/adapters/bullmq';
 * import { postgresOutboxLedger } from 'millrace/adapters/postgres';
 * import { createQueueDispatcher } from 'millrace/outbox';
 *
 * await using ledger = await postgresOutboxLedger('postgres://localhost/shop');
 * await using queue = await bullmqDeliveryQueue('redis://localhost:6379');
 * await using dispatcher = createQueueDispatcher({ ledger, queue });
 * await dispatcher.start();
 */
export async function bullmqDeliveryQueue(
  target: string | RedisClient,
  options: BullmqQueueOptions = {},
): Promise<DeliveryQueue> {
  const { prefix = 'mq:{outbox}', perTenant = false, timeoutMs = 5_000 } = options;
  const { clock = systemClock, observer = silentObserver } = options;
  const bullmq = await loadDriver('bullmq', () => import('bullmq'));
  const connection = await connectRedis(target, options);
  const { client } = connection;
  if (isCluster(client) && !/\{[^}]+\}/.test(prefix)) {
    await connection[Symbol.asyncDispose]();
    throw new MillraceError(
      'CONFIG_INVALID',
      'on a cluster the prefix of queues needs a hash tag: mq:{outbox}',
      { details: { field: 'prefix' } },
    );
  }
  const registry = `${prefix}:queues`;
  const nudges = createNudges(connection, `${prefix}:nudge`);
  const closing = new AbortController();
  const working = new Set<Promise<void>>();
  let producers = new Map<string, Queue>();

  function producerOf(name: string): Queue {
    const known = producers.get(name);
    if (known !== undefined) return known;
    const streams = { events: { maxLen: kept.events } };
    const producer = new bullmq.Queue(name, { connection: client, prefix, streams });
    producer.on('error', () => undefined);
    producers.set(name, producer);
    return producer;
  }

  /** One that was opened while Redis went away never works again. */
  async function forgetProducers(): Promise<void> {
    const old = producers;
    producers = new Map();
    await Promise.allSettled([...old.values()].map((each) => each.close()));
  }

  async function add(name: string, jobs: readonly DeliveryJob[]): Promise<void> {
    if (jobs.length === 0) return;
    await producerOf(name).addBulk(
      jobs.map((job) => ({
        name: job.eventType,
        data: toJobData(job),
        opts: {
          jobId: deliveryJobId(job),
          // Attempts are the ledger's.
          attempts: 1,
          removeOnComplete: true,
          removeOnFail: { count: kept.failedJobs },
        },
      })),
    );
  }

  function within<T>(work: Promise<T>): Promise<T> {
    const late = (): never => {
      throw new MillraceError('STORE_UNAVAILABLE', `no answer of Redis within ${timeoutMs} ms`);
    };
    return withinTime(work, { ms: timeoutMs, late, clock });
  }

  const listOf = (name: string): string => `${prefix}:${name}:wait`;

  return {
    perTenant,
    async offer(jobs, { waitingMax }) {
      if (jobs.length === 0) return [];
      const byName = Map.groupBy(jobs, (job) => deliveryQueueName(job, perTenant));
      const names = [...byName.keys()];
      const depths = await connection.ask((redis) =>
        Promise.all([
          ...names.map((name) => redis.llen(listOf(name))),
          redis.sadd(registry, names),
        ]),
      );
      const taken = new Map<DeliveryJob, Offered>();
      const adding = names.map((name, at) => {
        const room = Math.max(0, waitingMax - (depths[at] ?? 0));
        const fitting = (byName.get(name) ?? []).slice(0, room);
        for (const job of fitting) taken.set(job, 'taken');
        return { name, fitting };
      });
      try {
        await connection.ask(() =>
          within(Promise.all(adding.map(({ name, fitting }) => add(name, fitting)))),
        );
      } catch (error) {
        await forgetProducers();
        throw error;
      }
      return jobs.map((job) => taken.get(job) ?? 'full');
    },
    async work(handle, work) {
      const done = runBullmqWorkers({
        ...work,
        handle,
        createWorker: (name, processor, settings) => new bullmq.Worker(name, processor, settings),
        client: patientClient(client),
        registered: () => connection.ask((redis) => redis.smembers(registry)),
        signal: AbortSignal.any([work.signal, closing.signal]),
        prefix,
        perTenant,
        discoverMs: options.discoverMs ?? 1_000,
        lockMs: options.lockMs ?? 30_000,
        clock,
        observer,
      }).finally(() => working.delete(done));
      working.add(done);
      await done;
    },
    async *waiting() {
      for (const queue of await connection.ask((redis) => redis.smembers(registry))) {
        const ids = await connection.ask((redis) => redis.lrange(listOf(queue), 0, -1));
        yield { queue, claims: ids.flatMap((id) => claimOfJobId(id) ?? []) };
      }
    },
    nudge: () => nudges.tell(),
    onNudge: (listener) => nudges.listen(listener),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.allSettled(working);
      nudges[Symbol.dispose]();
      await forgetProducers();
      await connection[Symbol.asyncDispose]();
    },
  };
}
