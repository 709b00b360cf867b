// Subscriptions of the adapter that catch up: what they read from the server, and that no event is missed.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import type { EventFilter } from '../../src/store/index.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  unique,
} from '../../src/testing/conformance/store/fixture.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { fakeServer } from './fake-client.ts';

type ReadAll = KurrentDBClient['readAll'];
type ReadOptions = NonNullable<Parameters<ReadAll>[0]>;

const opened = new AsyncDisposableStack();
after(() => opened.disposeAsync());

/** Counts the reads of all events and the records that they return. */
function countedReads() {
  const counts = { filtered: 0, unfiltered: 0, records: 0 };
  const methods = (client: KurrentDBClient) => ({
    readAll: async function* (options: ReadOptions = {}) {
      counts[options.filter === undefined ? 'unfiltered' : 'filtered'] += 1;
      for await (const each of client.readAll(options)) {
        counts.records += 1;
        yield each;
      }
    } as ReadAll,
  });
  return { counts, methods };
}

test('a subscription that catches up gets only matches, and the records after the last match', async ({
  signal,
}) => {
  await using server = await fakeServer();
  const category = unique('few');
  const matches = newEvents(20);
  for (const event of matches) {
    await server.backing.store.append(newStream(), newEvents(100));
    await server.backing.store.append(newStream(category), [event]);
  }
  await server.backing.store.append(newStream(), newEvents(30));
  const { counts, methods } = countedReads();
  const db = await server.open(methods);
  counts.records = 0;
  await using follower = follow(db.store.subscribe({ filter: { category }, signal, pageSize: 5 }));
  await follower.caughtUp();
  assert.deepEqual(idsOf(follower.events), idsOf(matches));
  // Each page begins with the record at its position.
  assert.ok(counts.records <= 20 + 30 + 3 * 10, `${counts.records} of 2,050 records`);
});

test('a subscription without matches asks the server for them once', async ({ signal }) => {
  await using server = await fakeServer();
  for (let round = 0; round < 3; round += 1) {
    await server.backing.store.append(newStream(), newEvents(1_000));
  }
  const { counts, methods } = countedReads();
  const db = await server.open(methods);
  await using follower = follow(
    db.store.subscribe({ filter: { category: unique('none') }, signal, pageSize: 100 }),
  );
  const items = await follower.caughtUp();
  assert.equal(items.at(-1)?.position, await db.store.head());
  assert.equal(counts.filtered, 1);
});

for (const isFilteredBehind of [true, false]) {
  const [behind, ahead] = isFilteredBehind ? ['filtered', 'other'] : ['other', 'filtered'];
  test(`no event is missed if the node of ${behind} reads is behind the node of ${ahead} reads`, async ({
    signal,
  }) => {
    await using server = await fakeServer();
    const { store: backing } = server.backing;
    const category = unique('c');
    const events = newEvents(20);
    const positions: bigint[] = [];
    for (const event of events) {
      await backing.append(newStream(), newEvents(2));
      const { position } = await backing.append(newStream(category), [event]);
      positions.push(BigInt(`0x${position}`));
    }
    let reads = 0;
    const methods = (client: KurrentDBClient) => ({
      readAll: async function* (options: ReadOptions = {}) {
        reads += 1;
        // The node gets one event of the category in four reads, so some of its reads find nothing new.
        const isBehind = (options.filter !== undefined) === isFilteredBehind;
        const upTo = isBehind ? (positions[Math.floor(reads / 4)] ?? Infinity) : Infinity;
        for await (const each of client.readAll(options)) {
          if ((each.event?.position?.commit ?? 0n) <= upTo) yield each;
        }
      } as ReadAll,
    });
    const db = await server.open(methods, { pollIntervalMs: 50 });
    await using follower = follow(db.store.subscribe({ filter: { category }, signal }));
    assert.deepEqual(idsOf(await follower.count(events.length)), idsOf(events));
  });
}

for (const preset of ['23.10', '24.10'] as const) {
  test(`every checkpoint stays valid after a scavenge, with any filter, on the stand-in ${preset}`, async ({
    signal,
  }) => {
    const server = opened.use(await startStandIn({ preset }));
    await using db = await openKurrent(server.url);
    const { store } = db;
    const [a, b] = [unique('a'), unique('b')];
    const streams = [newStream(a), newStream(a), newStream(b), newStream(b)];
    const types = ['order.placed.v1', 'order.paid.v1', 'order.sent.v1'];
    for (let at = 0; at < 24; at += 1) {
      const type = types[at % types.length] ?? '';
      await store.append(streams[at % streams.length] ?? '', [newEvent({ type })]);
    }
    const checkpoints = (await store.readAll().toArray()).map(({ position }) => position);
    await store.setStreamMetadata(streams[0] ?? '', { maxCount: 1 });
    await store.setStreamMetadata(streams[3] ?? '', { truncateBefore: 3 });
    assert.ok(server.scavenge() > 6);
    const filters: readonly EventFilter[] = [
      { category: a },
      { types: ['order.paid.v1'], category: b },
      { streamPrefixes: [b], tenant: 'core' },
    ];
    for (const filter of filters) {
      const all = await store.readAll({ filter }).toArray();
      for (const checkpoint of checkpoints) {
        await using follower = follow(store.subscribe({ after: checkpoint, filter, signal }));
        await follower.caughtUp();
        const later = all.filter(({ position }) => position > checkpoint);
        assert.deepEqual(idsOf(follower.events), idsOf(later));
      }
    }
  });
}
