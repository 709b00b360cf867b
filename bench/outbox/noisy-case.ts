// While 20,000 messages of one tenant are being sent, another tenant enqueues a message: the time from its
// commit to the start of its delivery.

import type { Case, Goal, Runner } from '../benchmark.ts';
import type { OpenedQueue, QueueServers, QueueSubject, QueueWorker } from './queue-subject.ts';
import { sampleMessages } from './sample-messages.ts';

const concurrency = 50;

export function noisyCase(
  subjects: readonly QueueSubject[],
  servers: QueueServers,
  options: { readonly quick: boolean; readonly goals: readonly Goal[] },
): Case {
  return {
    name: 'noisy tenant, the wait of another one',
    measure: 'latency',
    batch: 1,
    roundsMin: options.quick ? undefined : 3,
    goals: options.goals,
    subjects: subjects.map(({ name, open }) => ({
      name,
      setup: async () => waiting(await open(servers), options.quick ? 5_000 : 20_000),
    })),
  };
}

function waiting(queue: OpenedQueue, noise: number): Runner {
  let worker: QueueWorker | undefined;
  let rounds = 0;
  return {
    async prepare() {
      await queue.empty();
      await queue.enqueue(sampleMessages(noise, 'noisy'));
    },
    async run(_n, record) {
      // A new tenant each time, because two tenants can share a lane by chance.
      rounds += 1;
      const quiet = `quiet-${rounds}`;
      const started = Promise.withResolvers<void>();
      const delivered = Promise.withResolvers<number>();
      const [message] = sampleMessages(1, quiet);
      if (message === undefined) return;
      const commit = await queue.begin(message);
      worker = await queue.start({
        concurrency,
        handle({ tenantId }) {
          started.resolve();
          if (tenantId === quiet) delivered.resolve(performance.now());
        },
      });
      await started.promise;
      const atMs = performance.now();
      await commit();
      record((await delivered.promise) - atMs);
    },
    finish: async () => worker?.stop(),
    teardown: () => queue.close(),
  };
}
