// One busy type among fifty: ten thousand jobs a minute arrive evenly, and a worker for all types starts them.
// A late job does not delay the arrival of the next one.

import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { openNats } from '../../src/engines/nats/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import {
  startWorkers,
  task,
  taskType,
  type Tasks,
  type TaskWorkers,
} from '../../src/tasks/index.ts';
import { ownedTasks } from '../../src/testing/owned-tasks.ts';
import { ours, type Case, type Runner } from '../benchmark.ts';
import { sampleMessages } from '../outbox/sample-messages.ts';
import type { TaskServers } from './task-subject.ts';

const perMinute = 10_000;
const everyMs = 60_000 / perMinute;
const typesCount = 50;

const types = Array.from({ length: typesCount }, (_, at) => taskType(`type${at}`, { workers: 10 }));
const hot = 'type25';

export function steadyCase(servers: TaskServers, { quick }: { readonly quick: boolean }): Case {
  const prefix = (): string => randomUUID().slice(0, 8);
  const on = (name: string, open: () => Promise<() => Promise<Tasks>>) => ({
    name,
    setup: async () => steady(await open()),
  });
  return {
    name: `latency, ${perMinute.toLocaleString('en-US')} a minute of one of ${typesCount} types`,
    measure: 'latency',
    // The number of jobs in 3 s or 20 s.
    batch: Math.round((quick ? 3_000 : 20_000) / everyMs),
    goals: [{ p99MsMax: 100 }],
    subjects: [
      on(ours, async () => {
        const [url, keyPrefix] = [await servers.redis(), `${prefix()}:`];
        return async () => ownedTasks(await openRedis(url, { keyPrefix }), { types });
      }),
      on(`${ours} (nats)`, async () => {
        const [url, own] = [await servers.nats(), prefix()];
        return async () => ownedTasks(await openNats(url, { prefix: own }), { types });
      }),
      on(`${ours} (sqlite)`, async () => {
        const url = `sqlite:${await servers.sqlite()}`;
        return async () => ownedTasks(await openSqlite(url), { types });
      }),
    ],
  };
}

async function steady(open: () => Promise<Tasks>): Promise<Runner> {
  const tasks = await open();
  const waiting = new Map<string, (atMs: number) => void>();
  let workers: TaskWorkers | undefined;
  let own: Tasks | undefined;

  async function one(): Promise<number> {
    const [payload] = sampleMessages(1);
    const sourceEventId = payload?.sourceEventId ?? '';
    const started = new Promise<number>((resolve) => void waiting.set(sourceEventId, resolve));
    const atMs = performance.now();
    const [startedAtMs] = await Promise.all([started, tasks.enqueue({ type: hot, payload })]);
    return startedAtMs - atMs;
  }

  return {
    async prepare() {
      own = await open();
      const handlers = types.map(({ name }) =>
        task(name, async ({ payload }) => {
          const { sourceEventId } = payload as { readonly sourceEventId: string };
          waiting.get(sourceEventId)?.(performance.now());
          waiting.delete(sourceEventId);
        }),
      );
      workers = startWorkers(own, handlers);
      for (let warm = 0; warm < 20; warm += 1) await one();
    },
    async run(n, record) {
      const startedAtMs = performance.now();
      const waits: Promise<void>[] = [];
      for (let at = 0; at < n; at += 1) {
        const leftMs = startedAtMs + at * everyMs - performance.now();
        if (leftMs > 0) await setTimeout(leftMs);
        waits.push(one().then(record));
      }
      await Promise.all(waits);
    },
    async finish() {
      await workers?.stop();
      await own?.[Symbol.asyncDispose]();
    },
    teardown: async () => tasks[Symbol.asyncDispose](),
  };
}
