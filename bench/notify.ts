// Benchmark of topics compared with ntfy: publishing, fan-out, latency from publish to reader, and the memory
// of idle readers. Both servers run as separate processes with a database file.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchNtfy } from '../tools/engines-ntfy.ts';
import { root } from '../tools/test-run/test-worker.ts';
import { ours, type Benchmark, type Case, type Runner } from './benchmark.ts';
import {
  openPublisher,
  openReaders,
  rssMiB,
  startOurs,
  startTheirs,
  type Publisher,
  type ServedTopics,
} from './notify/served-topics.ts';

const theirs = 'ntfy';
/** The settings that ntfy's guide recommends for many messages: WAL, and no sync for each message. */
const tuned = 'ntfy, not synced';
const tuning = [
  'cache-startup-queries: |',
  '  pragma journal_mode = WAL;',
  '  pragma synchronous = normal;',
];
const topic = 'bench';
const publishers = 32;
const readers = 500;
const idle = 1_000;
/** Per round, so that the 99th percentile is based on several values; also for the uncounted round. */
const timed = { messages: 1_000, rounds: 7 };
const timedQuickly = { messages: 200, rounds: 5 };

type Open = (
  server: ServedTopics,
  stack: AsyncDisposableStack,
) => Promise<Pick<Runner, 'rssMiB' | 'run'>>;

export const benchmark: Benchmark = {
  name: 'notify',
  peers: [],
  url: import.meta.url,
  cases: async ({ defer, quick }) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    defer(() => rm(folder, { recursive: true, force: true }));
    const program =
      process.env['MILLRACE_ENGINE_NTFY'] ?? (await fetchNtfy(`${root}.millrace/engines`));
    let files = 0;
    const start = (name: string): Promise<ServedTopics> => {
      files += 1;
      const file = join(folder, `${process.pid}-${files}.db`);
      if (name === ours) return startOurs(file);
      return startTheirs(program, name === tuned ? tuning : []);
    };
    const both = (about: Omit<Case, 'subjects'>, open: Open): Case => ({
      ...about,
      subjects: [ours, theirs, tuned].map((name) => ({
        name,
        async setup() {
          const stack = new AsyncDisposableStack();
          const server = stack.use(await start(name));
          return { ...(await open(server, stack)), teardown: () => stack.disposeAsync() };
        },
      })),
    });
    const { messages, rounds } = quick ? timedQuickly : timed;
    return [
      both(
        {
          name: `publish, ${publishers} in flight`,
          measure: 'throughput',
          goals: [
            { vs: theirs, ratioMin: 1 },
            { vs: tuned, ratioMin: 1 },
          ],
        },
        async ({ url }, stack) => {
          const all = await openPublishers(url, stack);
          return { run: (n) => publishMany(all, n) };
        },
      ),
      both(
        {
          name: `fan-out to ${readers} readers`,
          measure: 'throughput',
          goals: [
            { vs: theirs, ratioMin: 2 },
            { vs: tuned, ratioMin: 2 },
          ],
        },
        async ({ url }, stack) => {
          const all = await openPublishers(url, stack);
          const reading = stack.use(await openReaders(url, topic, readers));
          return {
            run: (n) => Promise.all([publishMany(all, n), reading.received(n * readers)]),
          };
        },
      ),
      both(
        {
          name: 'from a publish to a reader',
          measure: 'latency',
          batch: messages,
          roundsMin: rounds,
          goals: [theirs, tuned].flatMap((vs) => [
            { vs, ratioMin: 1 },
            { vs: `${vs} (p99)`, ratioMin: 1 },
          ]),
        },
        async ({ url }, stack) => {
          const one = stack.use(await openPublisher(url, topic));
          const reading = stack.use(await openReaders(url, topic, 1));
          return {
            async run(n, record) {
              for (let turn = 0; turn < n; turn += 1) {
                const startMs = performance.now();
                const published = one.publish(`m ${turn}`);
                await reading.received(1);
                record(performance.now() - startMs);
                await published;
              }
            },
          };
        },
      ),
      both(
        {
          name: `memory of ${idle} idle readers`,
          measure: 'memory',
          goals: [{ vs: theirs, ratioMin: 1 }],
        },
        async ({ url, pid }, stack) => {
          const before = await rssMiB(pid);
          stack.use(await openReaders(url, topic, idle));
          return { run: () => undefined, rssMiB: async () => (await rssMiB(pid)) - before };
        },
      ),
    ];
  },
};

function openPublishers(url: string, stack: AsyncDisposableStack): Promise<Publisher[]> {
  const open = async (): Promise<Publisher> => stack.use(await openPublisher(url, topic));
  return Promise.all(Array.from({ length: publishers }, open));
}

async function publishMany(all: readonly Publisher[], count: number): Promise<void> {
  let next = 0;
  const work = async (each: Publisher): Promise<void> => {
    while (next < count) {
      next += 1;
      await each.publish(`message ${next}`);
    }
  };
  await Promise.all(all.map(work));
}
