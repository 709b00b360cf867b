// Work queues on BullMQ. The part of a queue's name before its last colon is BullMQ's prefix, so a queue also processes
// jobs that other programs add with BullMQ itself.

import type * as Bullmq from 'bullmq';
import { systemClock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { silentObserver } from '../../../foundation/observer.ts';
import { checkJob } from '../../../work/check-job.ts';
import { matchesGlob } from '../../../foundation/matches-glob.ts';
import { checkQueueName } from '../../../work/queue-name.ts';
import { createRunningWork } from '../../../work/running-work.ts';
import {
  workLimits,
  type JobState,
  type NewJob,
  type WorkQueue,
} from '../../../work/work-queue.ts';
import {
  withTimeout,
  type RedisConnection,
  type RedisConnectionOptions,
} from '../connection/connection.ts';
import { blockingClient, isCluster } from './blocking-client.ts';
import { createNudges } from './nudges.ts';
import { loadBullmq, runWorkers, type QueueAddress } from './workers.ts';

/** Entries of BullMQ's event stream of a queue, which nothing here reads. */
const eventsRetained = 100;

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
  options: RedisConnectionOptions = {},
): WorkQueue {
  const { clock = systemClock, observer = silentObserver, timeoutMs = 5_000 } = options;
  const { client } = connection;
  const nudges = createNudges(connection);
  const workers = createRunningWork();
  let producers = new Map<string, Bullmq.Queue>();

  function addressOf(queue: string): QueueAddress {
    checkQueueName(queue);
    const at = queue.lastIndexOf(':');
    const prefix = at === -1 ? (isCluster(client) ? '{bull}' : 'bull') : queue.slice(0, at);
    if (isCluster(client) && !/\{[^}]+\}/.test(prefix)) {
      throw new MillraceError(
        'JOB_INVALID',
        `on a cluster, the prefix of queue '${queue}' needs a hash tag: mq:{outbox}:<name>`,
        { details: { field: 'queue' } },
      );
    }
    return { queue, prefix, name: queue.slice(at + 1) };
  }

  const registryOf = (prefix: string): string => `${prefix}:queues`;

  /** The queues that have had a job and fit the pattern. */
  async function registered(pattern: string): Promise<readonly QueueAddress[]> {
    const { prefix } = addressOf(pattern);
    const names = await connection.ask((redis) => redis.smembers(registryOf(prefix)));
    const space = pattern.slice(0, pattern.lastIndexOf(':') + 1);
    return names
      .map((name) => ({ queue: `${space}${name}`, prefix, name }))
      .filter(({ queue }) => matchesGlob(pattern, queue));
  }

  async function depthOf({ prefix, name }: QueueAddress): Promise<number> {
    const [waiting, prioritized] = await connection.ask((redis) =>
      Promise.all([
        redis.llen(`${prefix}:${name}:wait`),
        redis.zcard(`${prefix}:${name}:prioritized`),
      ]),
    );
    return waiting + prioritized;
  }

  function producerOf(bullmq: typeof Bullmq, { queue, prefix, name }: QueueAddress): Bullmq.Queue {
    const known = producers.get(queue);
    if (known !== undefined) return known;
    const streams = { events: { maxLen: eventsRetained } };
    const producer = new bullmq.Queue(name, { connection: client, prefix, streams });
    producer.on('error', () => undefined);
    producers.set(queue, producer);
    return producer;
  }

  async function closeProducers(): Promise<void> {
    const old = producers;
    producers = new Map();
    await Promise.allSettled([...old.values()].map((each) => each.close()));
  }

  /** A producer that was opened during the loss of a connection never recovers, so a failure replaces all. */
  async function ask<T>(
    address: QueueAddress,
    call: (producer: Bullmq.Queue) => Promise<T>,
  ): Promise<T> {
    const bullmq = await loadBullmq();
    try {
      return await connection.ask(() =>
        withTimeout(timeoutMs, call(producerOf(bullmq, address)), clock),
      );
    } catch (error) {
      await closeProducers();
      throw error;
    }
  }

  return {
    async add(queue, jobs, { waitingMax = Infinity } = {}) {
      const address = addressOf(queue);
      for (const job of jobs) checkJob(job);
      const { prefix, name } = address;
      const [depth] = await Promise.all([
        depthOf(address),
        connection.ask((redis) => redis.sadd(registryOf(prefix), name)),
      ]);
      const taken = jobs.slice(0, Math.max(0, waitingMax - depth));
      if (taken.length > 0) await ask(address, (each) => each.addBulk(taken.map(toBulkJob)));
      return taken.length;
    },
    async state(queue, id) {
      return states[await ask(addressOf(queue), (each) => each.getJobState(id))];
    },
    async work(handle, { queues, signal, leaseMs = workLimits.leaseMsDefault, ...work }) {
      const addresses = queues.map(addressOf);
      const bullmq = await loadBullmq();
      await workers.run(signal, (stop) =>
        runWorkers(handle, addresses, {
          ...work,
          leaseMs,
          signal: stop,
          bullmq,
          client: blockingClient(client),
          registered,
          clock,
          observer,
        }),
      );
    },
    depth: async (queue) => depthOf(addressOf(queue)),
    async *waiting(queues) {
      for (const { queue, prefix, name } of await registered(queues)) {
        const ids = await connection.ask((redis) =>
          Promise.all([
            redis.lrange(`${prefix}:${name}:wait`, 0, -1),
            redis.zrange(`${prefix}:${name}:prioritized`, 0, -1),
          ]),
        );
        yield { queue, ids: ids.flat() };
      }
    },
    nudge: (channel) => nudges.publish(channel),
    onNudge: (channel, listener) => nudges.listen(channel, listener),
    async [Symbol.asyncDispose]() {
      await workers.stop();
      nudges[Symbol.dispose]();
      await closeProducers();
      await connection[Symbol.asyncDispose]();
    },
  };
}

function toBulkJob({ id, name, data, priority, delayMs, ...retained }: NewJob) {
  return {
    name,
    data,
    opts: {
      jobId: id,
      // The handler decides about retries.
      attempts: 1,
      removeOnComplete: retained.removeOnComplete ?? workLimits.removeOnComplete,
      removeOnFail: retained.removeOnFail ?? workLimits.removeOnFail,
      ...(priority === undefined ? {} : { priority }),
      ...(delayMs === undefined || delayMs === 0 ? {} : { delay: delayMs }),
    },
  };
}
