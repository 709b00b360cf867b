// Sends 20,000 enqueued messages with an empty handler until the last one is settled. One round is not
// counted; at least three are, and all subjects take their turn in each.

import { setTimeout } from 'node:timers/promises';
import type { Case, Goal, Runner } from '../benchmark.ts';
import type { OpenedQueue, QueueServers, QueueSubject, QueueWorker } from './queue-subject.ts';
import { sampleMessages } from './sample-messages.ts';

/** A subject that needs a minute for all messages gets a quarter of them; the result is a rate. */
const slowBatch = 5_000;

const roundsMin = 3;

export function drainCases(
  subjects: readonly QueueSubject[],
  servers: QueueServers,
  options: {
    readonly quick: boolean;
    readonly goals: readonly Goal[];
    /** Subjects that are slow without concurrency. */
    readonly slow?: readonly QueueSubject[] | undefined;
  },
): Case[] {
  return [1, 50].map((concurrency) => ({
    name: `drain 20k, concurrency ${concurrency}`,
    measure: 'throughput',
    batch: options.quick ? 4_000 : 20_000,
    roundsMin: options.quick ? undefined : roundsMin,
    goals: options.goals,
    subjects: subjects.map((subject) => ({
      name: subject.name,
      batch:
        options.slow?.includes(subject) === true && concurrency === 1 && !options.quick
          ? slowBatch
          : undefined,
      setup: async () => draining(await subject.open(servers), concurrency),
    })),
  }));
}

function draining(queue: OpenedQueue, concurrency: number): Runner {
  let worker: QueueWorker | undefined;
  return {
    prepare: (n) => queue.enqueue(sampleMessages(n)),
    async run(n) {
      let handled = 0;
      const all = Promise.withResolvers<void>();
      const handle = (): void => {
        handled += 1;
        if (handled === n) all.resolve();
      };
      worker = await queue.start({ concurrency, handle });
      await all.promise;
      while (!(await queue.isSettled())) await setTimeout(1);
      return handled;
    },
    // Stopping is not measured, and a worker must not poll during the turns of other subjects.
    async finish() {
      await worker?.stop();
    },
    teardown: () => queue.close(),
  };
}
