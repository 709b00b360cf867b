// The work queues that the modules of a process use: their names are known only when they are used.

import { once } from '../../foundation/async/once.ts';
import type { WorkQueue } from '../../work/work-queue.ts';

export interface QueueDepth {
  readonly queue: string;
  /** Jobs that are due and not started. */
  readonly depth: number;
}

/** A metric has at most this many values of a label. */
const namesMax = 200;

export function createModuleQueues(open: () => Promise<WorkQueue>): {
  readonly open: () => Promise<WorkQueue>;
  readonly depths: () => Promise<readonly QueueDepth[]>;
} {
  const names = new Set<string>();
  const use = (queue: string): void => {
    if (names.size < namesMax && !queue.includes('*')) names.add(queue);
  };
  const opened = once(async (): Promise<WorkQueue> => {
    const queue = await open();
    return {
      ...queue,
      add(name, jobs, options) {
        use(name);
        return queue.add(name, jobs, options);
      },
      work(handle, options) {
        for (const name of options.queues) use(name);
        return queue.work(handle, options);
      },
    };
  });
  return {
    open: opened,
    async depths() {
      if (names.size === 0) return [];
      const queue = await opened();
      return Promise.all(
        [...names].map(async (name) => ({ queue: name, depth: await queue.depth(name) })),
      );
    },
  };
}
