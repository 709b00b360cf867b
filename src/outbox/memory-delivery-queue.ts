// A queue in memory, for unit tests and for a process that is both dispatcher and worker.

import { createWaiters } from '../foundation/async/waiters.ts';
import { deliveryJobId, deliveryQueueName, fitsType } from './delivery-job.ts';
import type { DeliveryJob, DeliveryQueue, WorkOptions } from './delivery-queue.ts';

interface Queued {
  readonly integrationType: string;
  /** By id, oldest first. */
  readonly jobs: Map<string, DeliveryJob>;
}

/**
 * Queues in memory.
 *
 * @example
 * import { createQueueDispatcher, memoryDeliveryQueue, memoryOutboxLedger } from 'millrace/outbox';
 *
 * const ledger = memoryOutboxLedger();
 * await using queue = memoryDeliveryQueue();
 * await using dispatcher = createQueueDispatcher({ ledger, queue });
 * await dispatcher.start();
 */
export function memoryDeliveryQueue({ perTenant = false } = {}): DeliveryQueue {
  const queues = new Map<string, Queued>();
  const listeners = new Set<() => void>();
  const changed = createWaiters();
  const closing = new AbortController();

  const queueOf = (job: DeliveryJob): Queued => {
    const name = deliveryQueueName(job, perTenant);
    const queue = queues.get(name) ?? { integrationType: job.integrationType, jobs: new Map() };
    queues.set(name, queue);
    return queue;
  };

  async function work(
    handle: (job: DeliveryJob) => Promise<void>,
    { types, concurrency, signal }: WorkOptions,
  ): Promise<void> {
    const ending = AbortSignal.any([signal, closing.signal]);
    const running = new Map<Queued, Set<Promise<void>>>();
    /** A job is removed even if its handler rejects; the handler has already reported the error. */
    const run = (job: DeliveryJob): Promise<void> => handle(job).catch(() => undefined);
    const startSome = (): void => {
      for (const queue of queues.values()) {
        if (!fitsType(types, queue.integrationType)) continue;
        const now = running.get(queue) ?? new Set();
        running.set(queue, now);
        for (const [id, job] of queue.jobs) {
          if (ending.aborted || now.size >= concurrency) break;
          queue.jobs.delete(id);
          const done = run(job).finally(() => {
            now.delete(done);
            startSome();
          });
          now.add(done);
        }
      }
    };
    while (!ending.aborted) {
      const offered = changed.wait(ending, () => false);
      startSome();
      await offered.catch(() => undefined);
    }
    await Promise.allSettled([...running.values()].flatMap((each) => [...each]));
  }

  return {
    perTenant,
    async offer(jobs, { waitingMax }) {
      const offered = jobs.map((job) => {
        const queue = queueOf(job);
        if (queue.jobs.size >= waitingMax) return 'full';
        queue.jobs.set(deliveryJobId(job), job);
        return 'taken';
      });
      changed.wakeAll();
      return offered;
    },
    work,
    async *waiting() {
      for (const [queue, { jobs }] of queues) {
        yield {
          queue,
          claims: [...jobs.values()].map(({ outboxId, token }) => ({ id: outboxId, token })),
        };
      }
    },
    nudge() {
      for (const listener of listeners) listener();
    },
    onNudge(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      queues.clear();
    },
  };
}
