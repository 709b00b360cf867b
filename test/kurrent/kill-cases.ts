// The server is killed in the middle of it, and comes back: nothing that it acknowledged is gone, and
// the clients find it again.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { followed } from './follow.ts';
import { collect, event, events, idsOf, unique, type ClientKind } from './official-clients.ts';
import { serveSqlite } from './served-sqlite.ts';

const timeout = 300_000;

export function runKillCases(kind: ClientKind): void {
  describe(`${kind.name}: the server is killed`, () => {
    test(
      'what was acknowledged is there when it is back, and the same client reads it',
      { timeout },
      async () => {
        await using server = await serveSqlite();
        await using client = kind.connect(server.url);
        const stream = unique();
        const sent = events(30);
        for (const each of sent) await client.append(stream, each);
        assert.equal((await collect(client.api.readStream(stream))).length, 30);
        await server.kill();
        await server.startAgain();
        const read = await again(() => collect(client.api.readStream(stream)));
        assert.deepEqual(idsOf(read), idsOf(sent));
        const { nextExpectedRevision } = await again(() => client.append(stream, event(), 29n));
        assert.equal(nextExpectedRevision, 30n);
      },
    );

    test(
      'appends under way are there whole or not at all, and can be repeated',
      { timeout },
      async () => {
        await using server = await serveSqlite();
        await using client = kind.connect(server.url);
        const stream = unique();
        await client.append(stream, event());
        const batches = Array.from({ length: 60 }, () => events(5));
        const outcomes = Promise.allSettled(batches.map((batch) => client.append(stream, batch)));
        await server.kill();
        const acknowledged = (await outcomes).map(({ status }) => status === 'fulfilled');
        await server.startAgain();
        const stored = new Set(idsOf(await again(() => collect(client.api.readStream(stream)))));
        for (const [index, batch] of batches.entries()) {
          const count = batch.filter(({ id }) => stored.has(id)).length;
          assert.ok(count === 5 || (count === 0 && acknowledged[index] !== true), `${count} of 5`);
        }
        for (const batch of batches) await again(() => client.append(stream, batch));
        const all = await collect(client.api.readStream(stream));
        assert.equal(all.length, 301);
        assert.equal(new Set(idsOf(all)).size, 301);
      },
    );

    test('a subscription fails, and a new one goes on where it was', { timeout }, async () => {
      await using server = await serveSqlite();
      await using client = kind.connect(server.url);
      const stream = unique();
      const sent = events(20);
      await client.append(stream, sent.slice(0, 10));
      const first = followed(client.api.subscribeToStream(stream));
      await first.count(10);
      await server.kill();
      await first.failed();
      await server.startAgain();
      await again(() => client.append(stream, sent.slice(10)));
      const fromRevision = first.seen.at(-1)?.event?.revision ?? 0n;
      const rest = await again(() =>
        collect(client.api.subscribeToStream(stream, { fromRevision }), 10),
      );
      assert.deepEqual(idsOf([...first.seen, ...rest]), idsOf(sent));
    });

    test(
      'a persistent subscription is still there, and its unsettled events come again',
      { timeout },
      async () => {
        await using server = await serveSqlite();
        await using client = kind.connect(server.url);
        const [stream, group] = [unique(), unique('group')];
        await client.append(stream, events(6));
        await client.api.createPersistentSubscriptionToStream(stream, group, {
          startFrom: 'start',
          resolveLinkTos: false,
          extraStatistics: false,
          messageTimeout: 30_000,
          maxRetryCount: 10,
          checkPointAfter: 50,
          checkPointLowerBound: 1,
          checkPointUpperBound: 10,
          maxSubscriberCount: 'unbounded',
          liveBufferSize: 500,
          readBatchSize: 20,
          historyBufferSize: 500,
          consumerStrategyName: 'RoundRobin',
        });
        const consumer = followed(
          client.api.subscribeToPersistentSubscriptionToStream(stream, group),
        );
        await consumer.count(6);
        await server.kill();
        await consumer.failed();
        await server.startAgain();
        const seen = await again(() =>
          collect(client.api.subscribeToPersistentSubscriptionToStream(stream, group), 6),
        );
        assert.equal(new Set(idsOf(seen)).size, 6);
      },
    );
  });
}

/** Until the client has found the server again. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
