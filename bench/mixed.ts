// Benchmark of one process that does everything on one SQLite file, as `npm start` does: the latency of an append
// while the process is idle, and while jobs drain and topics are published.
//
// Appends and messages arrive evenly; a late one does not delay the next. A round ends when all jobs are done.

import { setTimeout } from 'node:timers/promises';
import type { DomainEventEnvelope } from '../src/contracts/index.ts';
import { createPlatform, type Platform } from '../src/platform/index.ts';
import { bodyOf } from '../src/server/topics/ntfy-body.ts';
import { startWorkers, task, taskType } from '../src/tasks/index.ts';
import { openTopics, type Topics } from '../src/topics/index.ts';
import { readPublishParams } from '../src/topics/publish-params.ts';
import { requestParams } from '../src/topics/request-params.ts';
import { ours, type Benchmark, type Runner } from './benchmark.ts';
import { inBatches, sampleMessages } from './outbox/sample-messages.ts';
import { createDatabases } from './store/databases.ts';
import { sampleEvent, streamOf } from './store/sample-events.ts';

const appendEveryMs = 2;
const publishEveryMs = 5;
const type = 'deliver';

export const benchmark: Benchmark = {
  name: 'mixed',
  peers: [],
  url: import.meta.url,
  secondsPerSubject: 30,
  cases: (context) => {
    const newDatabase = createDatabases(context);
    const open = async (): Promise<Mixed> => openMixed(`sqlite:${await newDatabase('sqlite')}`);
    const jobs = context.quick ? 1_000 : 10_000;
    return [
      {
        name: `append while ${jobs.toLocaleString('en-US')} jobs drain and topics are published`,
        measure: 'latency',
        batch: jobs,
        roundsMin: 3,
        subjects: [
          { name: ours, setup: async () => busy(await open()) },
          // As many appends as arrive in one second.
          { name: 'idle', batch: 1_000 / appendEveryMs, setup: async () => idle(await open()) },
        ],
      },
      {
        name: 'jobs drain while events are appended and topics are published',
        measure: 'throughput',
        batch: jobs,
        roundsMin: 3,
        subjects: [{ name: ours, setup: async () => busy(await open()) }],
      },
    ];
  },
};

interface Mixed extends AsyncDisposable {
  readonly platform: Platform;
  append(): Promise<void>;
  publish(): Promise<void>;
}

async function openMixed(store: string): Promise<Mixed> {
  await using opened = new AsyncDisposableStack();
  const platform = opened.use(
    await createPlatform({ engines: { store }, taskTypes: [taskType(type)] }),
  );
  await platform.start();
  const topics = opened.use(await openTopics(await platform.engines.bus()));
  const resources = opened.move();
  let number = 0;
  return {
    platform,
    async append() {
      number += 1;
      const account = `a${number % 100}`;
      const { id, data, metadata, ...event } = sampleEvent(number, account);
      const envelope: DomainEventEnvelope = { ...event, eventId: id, ...metadata, payload: data };
      await platform.engines.store.append(streamOf(account), [envelope], { expected: 'any' });
    },
    publish: () => publishTo(topics),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

async function publishTo(topics: Topics): Promise<void> {
  const params = readPublishParams(requestParams({}, undefined), {
    pathSequenceId: undefined,
    nowMs: Date.now(),
    rules: topics.rules,
  });
  const body = bodyOf(Buffer.from('disk almost full on server 7'), 4_096);
  await topics.publish({ topic: 'alerts', params, body, visitor: 'ip:1', isExempt: true });
}

async function busy(mixed: Mixed): Promise<Runner> {
  const tasks = await mixed.platform.tasks();
  let left = 0;
  let drained = Promise.withResolvers<void>();
  const deliver = task(type, async () => {
    left -= 1;
    if (left === 0) drained.resolve();
  });
  return {
    async prepare(jobs) {
      left = jobs;
      drained = Promise.withResolvers();
      for (const batch of inBatches(sampleMessages(jobs))) {
        await tasks.enqueueMany(batch.map((payload) => ({ type, payload })));
      }
    },
    async run(_jobs, record) {
      const isDone = (): boolean => left === 0;
      const appending = evenly(appendEveryMs, isDone, async () => {
        const startedAtMs = performance.now();
        await mixed.append();
        record(performance.now() - startedAtMs);
      });
      const publishing = evenly(publishEveryMs, isDone, () => mixed.publish());
      const workers = startWorkers(tasks, [deliver], { concurrency: { [type]: 10 } });
      await drained.promise;
      await Promise.all([appending, publishing]);
      await workers.stop();
    },
    teardown: async () => mixed[Symbol.asyncDispose](),
  };
}

function idle(mixed: Mixed): Runner {
  return {
    async run(n, record) {
      let left = n;
      await evenly(
        appendEveryMs,
        () => left === 0,
        async () => {
          left -= 1;
          const startedAtMs = performance.now();
          await mixed.append();
          record(performance.now() - startedAtMs);
        },
      );
    },
    teardown: async () => mixed[Symbol.asyncDispose](),
  };
}

/** Starts an operation at each tick until the work is done, and waits for all of them. */
async function evenly(
  everyMs: number,
  isDone: () => boolean,
  operation: () => Promise<void>,
): Promise<void> {
  const startedAtMs = performance.now();
  const running: Promise<void>[] = [];
  for (let at = 0; !isDone(); at += 1) {
    const leftMs = startedAtMs + at * everyMs - performance.now();
    if (leftMs > 0) await setTimeout(leftMs);
    running.push(operation());
  }
  await Promise.all(running);
}
