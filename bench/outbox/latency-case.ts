// From the commit of one message to the start of its delivery, on an idle system.

import { setTimeout } from 'node:timers/promises';
import type { Case, Goal, Runner } from '../benchmark.ts';
import { createRandom } from '../random.ts';
import type { OpenedQueue, QueueServers, QueueSubject, QueueWorker } from './queue-subject.ts';
import { sampleMessages } from './sample-messages.ts';

const concurrency = 50;
/** Long enough for an idle worker to fall asleep. */
const pauseMs = { min: 15, more: 15 };

export function latencyCase(
  subjects: readonly QueueSubject[],
  servers: QueueServers,
  options: { readonly quick: boolean; readonly goals: readonly Goal[] },
): Case {
  return {
    name: 'latency, idle, commit to delivery',
    measure: 'latency',
    batch: options.quick ? 25 : 50,
    roundsMin: options.quick ? undefined : 5,
    goals: options.goals,
    subjects: subjects.map(({ name, open }) => ({
      name,
      setup: async () => delivering(await open(servers)),
    })),
  };
}

function delivering(queue: OpenedQueue): Runner {
  const random = createRandom(11);
  let worker: QueueWorker | undefined;
  let onDelivery: () => void = () => undefined;
  const deliverOne = async (): Promise<number> => {
    const [message] = sampleMessages(1);
    if (message === undefined) return 0;
    const started = new Promise<number>((resolve) => {
      onDelivery = () => resolve(performance.now());
    });
    await setTimeout(pauseMs.min + random.below(pauseMs.more));
    const commit = await queue.begin(message);
    const atMs = performance.now();
    const [startedAtMs] = await Promise.all([started, commit()]);
    return startedAtMs - atMs;
  };
  return {
    async prepare() {
      worker = await queue.start({ concurrency, handle: () => onDelivery() });
      for (let warm = 0; warm < 3; warm += 1) await deliverOne();
    },
    async run(n, record) {
      for (let done = 0; done < n; done += 1) record(await deliverOne());
    },
    finish: async () => worker?.stop(),
    teardown: () => queue.close(),
  };
}
