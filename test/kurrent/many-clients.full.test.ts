// Clients that connect, disconnect and are killed leave nothing in the server. Measured in the process of the server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startChild } from '../../src/testing/child-process.ts';
import { followed } from './follow.ts';
import { collect, event, events, eventStoreClient, idsOf, unique } from './official-clients.ts';
import { soakMinutes } from '../store/rig.ts';
import { serveSqlite, type ServedSqlite } from './served-sqlite.ts';
import type { SlowReaderInput } from './slow-reader-main.ts';

// The older client, because it closes its connections itself; the bridge of the newer one closes them at garbage
// collection.
const kind = await eventStoreClient();
const timeout = 500_000;
const mebibyte = 1_048_576;
const isSoak = soakMinutes > 0;

test(
  'killing one of six subscribed clients does not affect the others, and its resources are freed',
  { timeout },
  async () => {
    await using server = await serveSqlite();
    const stream = unique();
    const sent = events(isSoak ? 3_000 : 500, { data: { text: 'x'.repeat(500) } });
    await using writer = kind.connect(server.url);
    for (let at = 0; at < sent.length; at += 500) {
      await writer.append(stream, sent.slice(at, at + 500));
    }
    const before = await server.usage();

    const others = Array.from({ length: 5 }, () => kind.connect(server.url));
    const followers = others.map(({ api }) => followed(api.subscribeToStream(stream)));
    await using victim = startChild(new URL('./slow-reader-main.ts', import.meta.url), {
      input: { url: server.url, stream } satisfies SlowReaderInput,
    });
    await victim.message((message): message is string => message === 'in the middle');
    const during = await server.usage();
    assert.ok(during.sockets > before.sockets);
    await victim.kill('SIGKILL');

    const more = events(100);
    for (const each of more) await writer.append(stream, each);
    for (const follower of followers) {
      assert.deepEqual(
        idsOf(await follower.count(sent.length + more.length)),
        idsOf([...sent, ...more]),
      );
    }
    for (const follower of followers) await follower[Symbol.asyncDispose]();
    for (const client of others) await client[Symbol.asyncDispose]();
    const after = await settled(server, before.sockets);
    assert.equal(after.sockets, before.sockets);
  },
);

test(
  'clients connect, write, read, follow and disconnect: memory and handles stay flat',
  { timeout },
  async () => {
    await using server = await serveSqlite();
    const stream = unique();
    const look = async ({ api }: (typeof clients)[number]): Promise<void> => {
      const newest = { direction: 'backwards', fromRevision: 'end', maxCount: 1 } as const;
      assert.equal((await collect(api.readStream(stream, newest))).length, 1);
      const follower = followed(api.subscribeToAll({ fromPosition: 'start' }));
      await follower.count(1);
      await follower[Symbol.asyncDispose]();
    };
    let clients: ReturnType<typeof kind.connect>[] = [];
    const visits = async (count: number): Promise<void> => {
      for (let done = 0; done < count; done += clients.length) {
        clients = Array.from({ length: 10 }, () => kind.connect(server.url));
        // Sequentially: all clients of a process share one table of pending appends, and a client that disconnects
        // cancels all of them.
        await Promise.all(clients.map((client) => client.append(stream, event())));
        await Promise.all(clients.map(look));
        await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
      }
    };
    await visits(isSoak ? 100 : 30);
    const before = await settled(server, 0);
    await visits(isSoak ? 1_000 : 60);
    const after = await settled(server, before.sockets);
    assert.equal(after.sockets, before.sockets);
    const grown = (after.heapBytes - before.heapBytes) / mebibyte;
    assert.ok(grown < (isSoak ? 6 : 2), `the heap grew by ${grown.toFixed(1)} MiB`);
    const resident = (after.rssBytes - before.rssBytes) / mebibyte;
    // Memory of the allocator; a leak would be in the heap or keep a socket open.
    assert.ok(resident < 150, `the process grew by ${resident.toFixed(1)} MiB`);
  },
);

/** Waits until at most `sockets` are open, because sockets close asynchronously. */
async function settled(
  server: ServedSqlite,
  sockets: number,
): Promise<Awaited<ReturnType<ServedSqlite['usage']>>> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const usage = await server.usage();
    if (usage.sockets <= sockets || performance.now() > deadline) return usage;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
