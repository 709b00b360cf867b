// Benchmark of tasks beside job queues: the same jobs, the same Redis, synced once a second; PostgreSQL
// syncs every commit. Everybody keeps what is done.

import { startRedis } from '../src/testing/index.ts';
import type { Benchmark } from './benchmark.ts';
import { createPlaces } from './store/places.ts';
import { bullMqTasks } from './tasks/bullmq-tasks.ts';
import { millraceOnRedis } from './tasks/millrace-tasks.ts';
import { pgBossTasks } from './tasks/pg-boss-tasks.ts';
import { drainCases, enqueueCases, latencyCase } from './tasks/task-cases.ts';
import type { TaskPlaces } from './tasks/task-subject.ts';

const subjects = [millraceOnRedis, bullMqTasks, pgBossTasks];

export const benchmark: Benchmark = {
  name: 'tasks',
  peers: ['bullmq', 'pg-boss'],
  url: import.meta.url,
  // Most of it goes into filling.
  secondsPerSubject: 10,
  cases: (context) => {
    const { quick, signal, defer } = context;
    const newPlace = createPlaces(context);
    let redis: ReturnType<typeof startRedis> | undefined;
    defer(async () => (await redis)?.[Symbol.asyncDispose]());
    const places: TaskPlaces = {
      postgres: () => newPlace('postgres'),
      redis: async () => (await (redis ??= startRedis({ signal, appendOnly: 'everysec' }))).url,
    };
    const options = { subjects, places, quick };
    return [
      ...enqueueCases({ ...options, goals: [{ vs: 'bullmq', ratioMin: 1.5 }] }),
      ...drainCases({ ...options, goals: [{ vs: 'bullmq', ratioMin: 1.5 }] }),
      latencyCase({ ...options, goals: [{ vs: 'bullmq', ratioMin: 1 }] }),
    ];
  },
};
