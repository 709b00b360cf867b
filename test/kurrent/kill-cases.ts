// The server is killed and restarted while a client appends, follows and consumes: no acknowledged event is lost, and
// the client reconnects.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followed } from './follow.ts';
import { collect, event, events, idsOf, unique, type ClientKind } from './official-clients.ts';
import { serveSqlite } from './served-sqlite.ts';

const timeout = 300_000;

/** One kill for all cases, because each server start costs half a second of CPU. */
export function runKillCases(kind: ClientKind): void {
  test(`${kind.name}: the server is killed`, { timeout }, async (context) => {
    await using server = await serveSqlite({ groupLeaseMs: 3_000 });
    await using client = kind.connect(server.url);

    const acknowledged = unique();
    const acknowledgedEvents = events(30);
    for (const each of acknowledgedEvents) await client.append(acknowledged, each);
    assert.equal((await collect(client.api.readStream(acknowledged))).length, 30);

    const followedStream = unique();
    const followedEvents = events(20);
    await client.append(followedStream, followedEvents.slice(0, 10));
    const follower = followed(client.api.subscribeToStream(followedStream));
    await follower.count(10);

    const [consumedStream, group] = [unique(), unique('group')];
    await client.append(consumedStream, events(6));
    await client.api.createPersistentSubscriptionToStream(consumedStream, group, groupSettings);
    const consume = () =>
      client.api.subscribeToPersistentSubscriptionToStream(consumedStream, group);
    const consumer = followed(consume());
    await consumer.count(6);

    const interrupted = unique();
    await client.append(interrupted, event());
    const batches = Array.from({ length: 60 }, () => events(5));
    const outcomes = Promise.allSettled(batches.map((batch) => client.append(interrupted, batch)));
    await server.kill();
    const isAcknowledged = (await outcomes).map(({ status }) => status === 'fulfilled');
    await follower.failed();
    await consumer.failed();
    await server.startAgain();

    await context.test(
      'acknowledged events are stored, and the same client reads them',
      async () => {
        const read = await again(() => collect(client.api.readStream(acknowledged)));
        assert.deepEqual(idsOf(read), idsOf(acknowledgedEvents));
        const { nextExpectedRevision } = await again(() =>
          client.append(acknowledged, event(), 29n),
        );
        assert.equal(nextExpectedRevision, 30n);
      },
    );

    await context.test(
      'appends in progress are stored whole or not at all, and can be repeated',
      async () => {
        const stored = new Set(
          idsOf(await again(() => collect(client.api.readStream(interrupted)))),
        );
        for (const [index, batch] of batches.entries()) {
          const count = batch.filter(({ id }) => stored.has(id)).length;
          assert.ok(
            count === 5 || (count === 0 && isAcknowledged[index] !== true),
            `${count} of 5`,
          );
        }
        for (const batch of batches) await again(() => client.append(interrupted, batch));
        const all = await collect(client.api.readStream(interrupted));
        assert.equal(all.length, 301);
        assert.equal(new Set(idsOf(all)).size, 301);
      },
    );

    await context.test(
      'a subscription failed, and a new one continues after its last event',
      async () => {
        await again(() => client.append(followedStream, followedEvents.slice(10)));
        const fromRevision = follower.seen.at(-1)?.event?.revision ?? 0n;
        const rest = await again(() =>
          collect(client.api.subscribeToStream(followedStream, { fromRevision }), 10),
        );
        assert.deepEqual(idsOf([...follower.seen, ...rest]), idsOf(followedEvents));
      },
    );

    await context.test(
      'a persistent subscription delivers its unsettled events again',
      async () => {
        const seen = await again(() => collect(consume(), 6));
        assert.equal(new Set(idsOf(seen)).size, 6);
      },
    );
  });
}

const groupSettings = {
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
} as const;

/** Repeats the call until the client has reconnected. */
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
