// 20,000 messages that wait already, a handler that does nothing, until the last one is settled.

import { setTimeout } from 'node:timers/promises';
import type { Case, Goal, Runner } from '../benchmark.ts';
import type { OpenedQueue, QueuePlaces, QueueSubject, QueueWorker } from './queue-subject.ts';
import { sampleMessages } from './sample-messages.ts';

export function drainCases(
  subjects: readonly QueueSubject[],
  places: QueuePlaces,
  options: { readonly quick: boolean; readonly goals: readonly Goal[]; readonly mode?: string },
): Case[] {
  return [1, 50].map((concurrency) => ({
    name: `drain 20k, concurrency ${concurrency}${options.mode ?? ''}`,
    measure: 'throughput',
    batch: options.quick ? 4_000 : 20_000,
    goals: options.goals,
    subjects: subjects.map(({ name, open }) => ({
      name,
      setup: async () => draining(await open(places), concurrency),
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
