// 20,000 messages that wait already, a handler that does nothing, until the last one is settled. One round
// that is not counted, then at least three, in each of which all subjects take their turn.

import { setTimeout } from 'node:timers/promises';
import type { Case, Goal, Runner } from '../benchmark.ts';
import type { OpenedQueue, QueuePlaces, QueueSubject, QueueWorker } from './queue-subject.ts';
import { sampleMessages } from './sample-messages.ts';

/** Whoever needs a minute for all of them does a quarter; what is told is the rate of one message. */
const slowBatch = 5_000;

const roundsMin = 3;

export function drainCases(
  subjects: readonly QueueSubject[],
  places: QueuePlaces,
  options: {
    readonly quick: boolean;
    readonly goals: readonly Goal[];
    /** Subjects that are slow one by one. */
    readonly slow?: readonly QueueSubject[];
  },
): Case[] {
  return [1, 50].map((concurrency) => ({
    name: `drain 20k, concurrency ${concurrency}`,
    measure: 'throughput',
    batch: options.quick ? 4_000 : 20_000,
    ...(options.quick ? {} : { roundsMin }),
    goals: options.goals,
    subjects: subjects.map((subject) => ({
      name: subject.name,
      ...(options.slow?.includes(subject) === true && concurrency === 1 && !options.quick
        ? { batch: slowBatch }
        : {}),
      setup: async () => draining(await subject.open(places), concurrency),
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
    // What stopping takes is not what is measured, and while the others run nobody may poll.
    async finish() {
      await worker?.stop();
    },
    teardown: () => queue.close(),
  };
}
