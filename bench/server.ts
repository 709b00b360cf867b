// Benchmark of the HTTP API end to end: a command is received, appended, projected, and visible in its
// document. The limit is bare Fastify with one durable insert. Both servers run as separate processes on SQLite
// with every commit synced, with 50 connections.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ours, type Benchmark, type Case, type Runner } from './benchmark.ts';
import { eachInFlight } from './loops.ts';
import { connections, startServedHttp, type ServedHttp } from './server/served-http.ts';

const limit = 'fastify + insert';
const scripts = {
  [ours]: new URL('./server/millrace-main.ts', import.meta.url),
  [limit]: new URL('./server/fastify-main.ts', import.meta.url),
};
const accounts = 1_000;
const idleMs = 3_000;

export const benchmark: Benchmark = {
  name: 'server',
  peers: ['fastify'],
  url: import.meta.url,
  cases: async ({ defer }) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    defer(() => rm(folder, { recursive: true, force: true }));
    let files = 0;
    const start = (script: URL): Promise<ServedHttp> => {
      files += 1;
      return startServedHttp(script, { file: join(folder, `${process.pid}-${files}.db`) });
    };
    const shared = Object.entries(scripts).map(([name, script]) => {
      let served: Promise<ServedHttp> | undefined;
      defer(async () => (await served?.catch(() => undefined))?.close());
      return { name, script, serve: () => (served ??= start(script)) };
    });
    const both = (
      name: string,
      measure: Case['measure'],
      operation: (served: ServedHttp, index: number) => Promise<unknown>,
    ): Case => ({
      name,
      measure,
      subjects: shared.map(({ name: subject, serve }) => ({
        name: subject,
        setup: async (): Promise<Runner> => {
          const served = await serve();
          const call = (index: number): Promise<unknown> => operation(served, index);
          return {
            run: measure === 'latency' ? timedInFlight(call) : eachInFlight(connections, call),
          };
        },
      })),
    });
    return [
      both('command, 50 connections', 'throughput', send),
      both('command until it is seen, 50 connections', 'throughput', sendAndSee),
      both('latency of a command, 50 connections', 'latency', send),
      both('latency until it is seen, 50 connections', 'latency', sendAndSee),
      {
        name: 'start until the first response',
        measure: 'latency',
        batch: 1,
        subjects: shared.map(({ name, script }) => ({
          name,
          setup: () => ({
            async run(n: number, record: (ms: number) => void) {
              for (let done = 0; done < n; done += 1) {
                const startMs = performance.now();
                const served = await start(script);
                record(performance.now() - startMs);
                await served.close();
              }
            },
          }),
        })),
      },
      {
        name: 'idle',
        measure: 'memory',
        batch: 1,
        subjects: shared.map(({ name, serve }) => ({
          name,
          setup: () => ({
            async run() {
              await serve();
              await sleep(idleMs);
            },
            rssMiB: async () => (await serve()).rssMiB(),
          }),
        })),
      },
    ];
  },
};

function send({ call }: ServedHttp, index: number): Promise<unknown> {
  const body = { id: `a-${index % accounts}`, payload: { amount: 1 } };
  return call('POST', '/api/v1/commands/account.deposit', body);
}

async function sendAndSee(served: ServedHttp, index: number): Promise<unknown> {
  const { id, position } = (await send(served, index)) as Readonly<
    Record<'id' | 'position', string>
  >;
  const waitFor = encodeURIComponent(position);
  return served.call('GET', `/api/v1/documents/banking/account/${id}?waitFor=${waitFor}`);
}

/** Keeps all connections busy, and times each call. */
function timedInFlight(operation: (index: number) => Promise<unknown>): Runner['run'] {
  return (n, record) =>
    eachInFlight(connections, async (index) => {
      const startMs = performance.now();
      const kept = await operation(index);
      record(performance.now() - startMs);
      return kept;
    })(n, record);
}
