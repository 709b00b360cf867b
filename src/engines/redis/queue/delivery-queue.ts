// Delivery queues on BullMQ: one for each integration type, or for each type and tenant. Redis may lose them; the
// ledger is authoritative and decides whether a job is still current.

import type * as Bullmq from 'bullmq';
import { systemClock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { silentObserver } from '../../../foundation/observer.ts';
import { createOngoingCalls } from '../../../foundation/async/ongoing-calls.ts';
import {
  claimOfJobId,
  deliveryJobId,
  deliveryQueueName,
  toJobData,
} from '../../../outbox/delivery-job.ts';
import type {
  DeliveryJob,
  DeliveryQueue,
  Offered,
  WorkOptions,
} from '../../../outbox/delivery-queue.ts';
import {
  withTimeout,
  type RedisClient,
  type RedisConnection,
  type RedisConnectionOptions,
} from '../connection/connection.ts';
import { blockingClient, isCluster } from './blocking-client.ts';
import { loadBullmq, runBullmqWorkers } from './workers.ts';

export interface DeliveryQueueOptions {
  /**
   * Prefix of the keys of all delivery queues; its hash tag puts them in one slot of a cluster. Must be the same in all
   * processes. Default: `mq:{outbox}`.
   */
  readonly queuePrefix?: string | undefined;
  /**
   * Whether each tenant of an integration type has a separate delivery queue. Must be the same in all processes.
   * Default: false.
   */
  readonly queuePerTenant?: boolean | undefined;
  /** Interval at which workers check for new delivery queues. Default: 1 s. */
  readonly queueDiscoverMs?: number | undefined;
  /** Time after which BullMQ takes a delivery from a dead worker. Default: 30 s. */
  readonly queueLeaseMs?: number | undefined;
}

/** How long BullMQ keeps jobs for inspection; the ledger keeps all messages. */
const retained = { failedJobs: 100, events: 100 };

export function bullmqDeliveryQueue(
  connection: RedisConnection,
  options: DeliveryQueueOptions & RedisConnectionOptions = {},
): DeliveryQueue {
  const { queuePrefix: prefix = 'mq:{outbox}', queuePerTenant: perTenant = false } = options;
  const { queueDiscoverMs: discoverMs = 1_000, queueLeaseMs: lockMs = 30_000 } = options;
  const { clock = systemClock, observer = silentObserver, timeoutMs = 5_000 } = options;
  const { client } = connection;
  if (isCluster(client) && !/\{[^}]+\}/.test(prefix)) {
    throw new MillraceError(
      'CONFIG_INVALID',
      'on a cluster, queuePrefix needs a hash tag: mq:{outbox}',
      { details: { field: 'queuePrefix' } },
    );
  }
  const registry = `${prefix}:queues`;
  const nudges = createNudges(connection, `${prefix}:nudge`);
  const closing = new AbortController();
  const working = createOngoingCalls();
  let producers = new Map<string, Bullmq.Queue>();

  function producerOf(bullmq: typeof Bullmq, name: string): Bullmq.Queue {
    const known = producers.get(name);
    if (known !== undefined) return known;
    const streams = { events: { maxLen: retained.events } };
    const producer = new bullmq.Queue(name, { connection: client, prefix, streams });
    producer.on('error', () => undefined);
    producers.set(name, producer);
    return producer;
  }

  /** A producer that was opened during the loss of a connection never recovers, so all are replaced. */
  async function closeProducers(): Promise<void> {
    const old = producers;
    producers = new Map();
    await Promise.allSettled([...old.values()].map((each) => each.close()));
  }

  async function add(producer: Bullmq.Queue, jobs: readonly DeliveryJob[]): Promise<void> {
    if (jobs.length === 0) return;
    await producer.addBulk(
      jobs.map((job) => ({
        name: job.eventType,
        data: toJobData(job),
        opts: {
          jobId: deliveryJobId(job),
          // The ledger counts attempts.
          attempts: 1,
          removeOnComplete: true,
          removeOnFail: { count: retained.failedJobs },
        },
      })),
    );
  }

  async function runWorkers(
    handle: Parameters<DeliveryQueue['work']>[0],
    work: WorkOptions,
  ): Promise<void> {
    const bullmq = await loadBullmq();
    await runBullmqWorkers({
      ...work,
      handle,
      bullmq,
      client: blockingClient(client),
      registered: () => connection.ask((redis) => redis.smembers(registry)),
      signal: AbortSignal.any([work.signal, closing.signal]),
      prefix,
      perTenant,
      discoverMs,
      lockMs,
      stalledMax: 1,
      clock,
      observer,
    });
  }

  const listOf = (name: string): string => `${prefix}:${name}:wait`;

  return {
    perTenant,
    async offer(jobs, { waitingMax }) {
      if (jobs.length === 0) return [];
      const bullmq = await loadBullmq();
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
          withTimeout(
            timeoutMs,
            Promise.all(adding.map(({ name, fitting }) => add(producerOf(bullmq, name), fitting))),
            clock,
          ),
        );
      } catch (error) {
        await closeProducers();
        throw error;
      }
      return jobs.map((job) => taken.get(job) ?? 'full');
    },
    work: (handle, work) => working.track(runWorkers(handle, work)),
    async *waiting() {
      for (const queue of await connection.ask((redis) => redis.smembers(registry))) {
        const ids = await connection.ask((redis) => redis.lrange(listOf(queue), 0, -1));
        yield { queue, claims: ids.flatMap((id) => claimOfJobId(id) ?? []) };
      }
    },
    nudge: () => nudges.publish(),
    onNudge: (listener) => nudges.listen(listener),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await working.settled();
      nudges[Symbol.dispose]();
      await closeProducers();
      await connection[Symbol.asyncDispose]();
    },
  };
}

interface Nudges extends Disposable {
  publish(): void;
  listen(listener: () => void): () => void;
}

/** Nudges wake the dispatcher over Pub/Sub. If a nudge is lost, the dispatcher polls at its next tick. */
function createNudges(connection: RedisConnection, channel: string): Nudges {
  const listeners = new Set<() => void>();
  let subscriber: RedisClient | undefined;
  let isPublishing = false;
  let isRequestedAgain = false;

  /** Any number of requests during a publish results in one more publish. */
  async function publish(): Promise<void> {
    isPublishing = true;
    do {
      isRequestedAgain = false;
      // If the publish fails, the dispatcher polls at its next tick.
      await connection.ask((client) => client.publish(channel, '')).catch(() => undefined);
    } while (isRequestedAgain);
    isPublishing = false;
  }

  function subscribe(): RedisClient {
    const client = blockingClient(connection.client);
    client.on('message', () => {
      for (const listener of listeners) listener();
    });
    // The client repeats the subscription whenever it reconnects.
    client.subscribe(channel).catch(() => undefined);
    return client;
  }

  return {
    publish() {
      if (isPublishing) isRequestedAgain = true;
      else void publish();
    },
    listen(listener) {
      subscriber ??= subscribe();
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [Symbol.dispose]() {
      listeners.clear();
      subscriber?.disconnect();
    },
  };
}
