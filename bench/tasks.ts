// Benchmark of tasks compared with job queues: the same jobs and the same Redis, synced once a second; PostgreSQL
// and SQLite sync every commit. Every subject keeps completed jobs.

import { startNats, startRedis } from '../src/testing/index.ts';
import type { Benchmark } from './benchmark.ts';
import { createDatabases } from './store/databases.ts';
import { bullMqTasks } from './tasks/bullmq-tasks.ts';
import { millraceOnNats, millraceOnRedis, millraceOnSqlite } from './tasks/millrace-tasks.ts';
import { pgBossTasks } from './tasks/pg-boss-tasks.ts';
import { steadyCase } from './tasks/steady-case.ts';
import { drainCases, enqueueCases, latencyCase } from './tasks/task-cases.ts';
import type { TaskServers } from './tasks/task-subject.ts';

const subjects = [millraceOnRedis, millraceOnNats, millraceOnSqlite, bullMqTasks, pgBossTasks];

export const benchmark: Benchmark = {
  name: 'tasks',
  peers: ['bullmq', 'pg-boss'],
  url: import.meta.url,
  // Most of the time is needed to enqueue the jobs.
  secondsPerSubject: 10,
  cases: (context) => {
    const { quick, signal, defer } = context;
    const newDatabase = createDatabases(context);
    let redis: ReturnType<typeof startRedis> | undefined;
    let nats: ReturnType<typeof startNats> | undefined;
    defer(async () => (await redis)?.[Symbol.asyncDispose]());
    defer(async () => (await nats)?.[Symbol.asyncDispose]());
    const servers: TaskServers = {
      postgres: () => newDatabase('postgres'),
      redis: async () => (await (redis ??= startRedis(redisOptions(signal)))).url,
      sqlite: () => newDatabase('sqlite'),
      nats: async () => (await (nats ??= startNats({ signal }))).url,
    };
    const options = { subjects, servers, quick };
    return [
      ...enqueueCases({ ...options, goals: [{ vs: 'bullmq', ratioMin: 1.5 }] }),
      ...drainCases({ ...options, goals: [{ vs: 'bullmq', ratioMin: 1.5 }] }),
      latencyCase({ ...options, goals: [{ vs: 'bullmq', ratioMin: 1 }] }),
      steadyCase(servers, { quick }),
    ];
  },
};

/** Turns off rewriting of the append-only file, a second process that would slow the current subject. */
function redisOptions(signal: AbortSignal): Parameters<typeof startRedis>[0] {
  const settings = { 'auto-aof-rewrite-percentage': '0' };
  return { signal, appendOnly: 'everysec', settings };
}
