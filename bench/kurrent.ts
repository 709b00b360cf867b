// Benchmark of the server that speaks KurrentDB's protocol, on SQLite with every commit synced,
// through the official client. The limit is the same client with a server on the same gRPC library
// that stores nothing. Both servers are separate processes.
//
// Calls are counted, except in `catch-up`, which counts events.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ours, type Benchmark, type Case, type Runner } from './benchmark.ts';
import { eachInFlight } from './loops.ts';
import { sampleEvent, sampleEvents } from './kurrent/sample-events.ts';
import { startServed, type Served, type ServedInput } from './kurrent/served.ts';

const echo = 'gRPC echo';
/** The durable limit: the server responds to an append after it is on disk. */
const syncedEcho = 'gRPC echo with fsync';
const readStream = 'bench-read';
const eventsPerStream = 1_000;

export const benchmark: Benchmark = {
  name: 'kurrent',
  peers: [],
  url: import.meta.url,
  cases: async ({ quick, defer }) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    defer(() => rm(folder, { recursive: true, force: true }));
    /** Started by the first case that needs it, and shared by the others. */
    const shared = (
      script: URL,
      prepare: (served: Served) => Promise<void>,
      more: Pick<ServedInput, 'isSynced'> = {},
    ) => {
      let started: Promise<Served> | undefined;
      defer(async () => (await started?.catch(() => undefined))?.close());
      const input = { file: join(folder, 'events.db'), eventsPerStream, ...more };
      const start = async (): Promise<Served> => {
        const served = await startServed(script, input);
        await prepare(served);
        return served;
      };
      return () => (started ??= start());
    };
    const catchUpEvents = quick ? 5_000 : 50_000;
    const servers = {
      [ours]: shared(new URL('./kurrent/millrace-main.ts', import.meta.url), ({ client }) =>
        fill(client, catchUpEvents),
      ),
      [echo]: shared(new URL('./kurrent/echo-main.ts', import.meta.url), async () => undefined),
    };
    const withSync = {
      ...servers,
      [syncedEcho]: shared(
        new URL('./kurrent/echo-main.ts', import.meta.url),
        async () => undefined,
        { isSynced: true },
      ),
    };
    const both = (
      name: string,
      runnerOf: (served: Served) => Runner,
      more: Pick<Case, 'batch'> = {},
      from: Readonly<Record<string, () => Promise<Served>>> = servers,
    ): Case => ({
      name,
      measure: 'throughput',
      goals: [{ vs: echo, ratioMin: 0.5 }],
      ...more,
      subjects: Object.entries(from).map(([subject, serve]) => ({
        name: subject,
        setup: async () => runnerOf(await serve()),
      })),
    });

    return [
      ...(
        [
          ['append 1, 1 in flight', 1, 1],
          ['append 1, 64 in flight', 64, 1],
          ['append batch 100', 1, 100],
        ] as const
      ).map(([name, inFlight, count]) =>
        both(name, ({ client }) => ({ run: appends(client, inFlight, count) }), {}, withSync),
      ),
      both('read stream 1000', ({ client }) => ({
        run: eachInFlight(1, async () => {
          let count = 0;
          const whole = client.readStream(readStream, { maxCount: eventsPerStream });
          for await (const { event } of whole) if (event !== undefined) count += 1;
          if (count !== eventsPerStream) throw new Error(`read ${count} events`);
          return count;
        }),
      })),
      both(
        'catch-up',
        ({ client }) => ({
          async run(n) {
            let left = n;
            for await (const { event } of client.subscribeToAll({ fromPosition: 'start' })) {
              if (event !== undefined) left -= 1;
              if (left === 0) break;
            }
            return left;
          },
        }),
        { batch: catchUpEvents },
      ),
    ];
  },
};

function appends(client: Served['client'], inFlight: number, count: number): Runner['run'] {
  return eachInFlight(inFlight, (index) =>
    client.appendToStream(
      `bench-${index % 100}`,
      count === 1 ? sampleEvent(index) : sampleEvents(count),
      { streamState: 'any' },
    ),
  );
}

async function fill(client: Served['client'], events: number): Promise<void> {
  for (let done = 0; done < events; done += eventsPerStream) {
    const stream = done === 0 ? readStream : `filled-${done}`;
    await client.appendToStream(stream, sampleEvents(eventsPerStream));
  }
}
