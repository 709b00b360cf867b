// Enqueueing jobs one by one and in bulk, processing them with concurrency 1 and 50, and the latency of one
// job on an idle system.

import { setTimeout } from 'node:timers/promises';
import type { Case, Goal, Runner } from '../benchmark.ts';
import { eachInFlight } from '../loops.ts';
import { inBatches, sampleMessages } from '../outbox/sample-messages.ts';
import { createRandom } from '../random.ts';
import type { OpenedTaskQueue, TaskServers, TaskSubject } from './task-subject.ts';

const inFlight = 256;
const bulk = 1_000;
/** Counted rounds after an uncounted one; the goals concern steady operation, and rounds differ by a quarter. */
const roundsMin = 5;
/** For the drain with a goal, because a shared machine varies from minute to minute. */
const drainRoundsMin = 15;
/** For subjects that sync every commit, or send each job separately. */
const slowBatch = 5_000;
/** Long enough for an idle worker to fall asleep. */
const pauseMs = { min: 5, more: 10 };

interface CaseOptions {
  readonly subjects: readonly TaskSubject[];
  readonly servers: TaskServers;
  readonly quick: boolean;
}

export function enqueueCases(options: CaseOptions & { readonly goals: readonly Goal[] }): Case[] {
  const { servers, quick, subjects } = options;
  return [
    {
      name: `enqueue, ${inFlight} in flight`,
      measure: 'throughput',
      batch: quick ? 2_000 : 10_000,
      subjects: subjects.map(({ name, open }) => ({
        name,
        setup: async () => {
          const queue = await open(servers);
          const jobs = sampleMessages(bulk);
          const enqueue = async (at: number): Promise<unknown> => {
            const job = jobs[at % bulk];
            return job === undefined ? undefined : queue.enqueue(job);
          };
          return { run: eachInFlight(inFlight, enqueue), teardown: () => queue.close() };
        },
      })),
    },
    {
      name: 'enqueue bulk, 1,000 each',
      measure: 'throughput',
      batch: quick ? 4_000 : 20_000,
      goals: options.goals,
      subjects: subjects.map(({ name, open }) => ({
        name,
        setup: async () => {
          const queue = await open(servers);
          return { run: (n) => fill(queue, n), teardown: () => queue.close() };
        },
      })),
    },
  ];
}

async function fill(queue: OpenedTaskQueue, count: number): Promise<void> {
  for (const jobs of inBatches(sampleMessages(count), bulk)) await queue.enqueueMany(jobs);
}

export function drainCases(options: CaseOptions & { readonly goals: readonly Goal[] }): Case[] {
  return [1, 50].map((concurrency) => ({
    name: `drain, concurrency ${concurrency}`,
    measure: 'throughput',
    batch: options.quick ? 4_000 : 10_000,
    roundsMin: options.quick ? undefined : concurrency === 50 ? drainRoundsMin : roundsMin,
    goals: concurrency === 50 ? options.goals : [],
    subjects: options.subjects.map(({ name, open, isSlow = false }) => ({
      name,
      batch: isSlow && !options.quick ? slowBatch : undefined,
      setup: async () => draining(await open(options.servers), concurrency),
    })),
  }));
}

function draining(queue: OpenedTaskQueue, concurrency: number): Runner {
  let worker: { stop(): Promise<void> } | undefined;
  return {
    prepare: (n) => fill(queue, n),
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
    finish: async () => worker?.stop(),
    teardown: () => queue.close(),
  };
}

export function latencyCase(options: CaseOptions & { readonly goals: readonly Goal[] }): Case {
  return {
    name: 'latency, idle, enqueue to start',
    measure: 'latency',
    batch: options.quick ? 40 : 200,
    roundsMin: options.quick ? undefined : roundsMin,
    goals: options.goals,
    subjects: options.subjects.map(({ name, open }) => ({
      name,
      setup: async () => starting(await open(options.servers)),
    })),
  };
}

function starting(queue: OpenedTaskQueue): Runner {
  const random = createRandom(11);
  let worker: { stop(): Promise<void> } | undefined;
  let onStart: () => void = () => undefined;
  const startOne = async (): Promise<number> => {
    const [job] = sampleMessages(1);
    if (job === undefined) return 0;
    const started = new Promise<number>((resolve) => {
      onStart = () => resolve(performance.now());
    });
    await setTimeout(pauseMs.min + random.below(pauseMs.more));
    const atMs = performance.now();
    const [startedAtMs] = await Promise.all([started, queue.enqueue(job)]);
    return startedAtMs - atMs;
  };
  return {
    async prepare() {
      worker = await queue.start({ concurrency: 50, handle: () => onStart() });
      for (let warm = 0; warm < 3; warm += 1) await startOne();
    },
    async run(n, record) {
      for (let done = 0; done < n; done += 1) record(await startOne());
    },
    finish: async () => worker?.stop(),
    teardown: () => queue.close(),
  };
}
