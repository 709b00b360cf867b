// The adapter on the stand-in for a real EventStoreDB, where events were lost or stored twice.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  unique,
} from '../../src/testing/conformance/store/fixture.ts';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { startStandIn, type StandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { again } from './recovery-cases.ts';
import { scavengeCases } from './scavenge-cases.ts';

const opened = new AsyncDisposableStack();
after(() => opened.disposeAsync());

async function serve(preset: Preset): Promise<StandIn> {
  return opened.use(await startStandIn({ preset }));
}

for (const preset of ['23.10', '24.10'] as const) {
  describe(`a scavenge, on the stand-in ${preset}`, () =>
    scavengeCases(async () => {
      const server = await serve(preset);
      return { url: server.url, scavenge: async () => assert.equal(server.scavenge(), 10) };
    }));
}

test('an acknowledged append that is repeated after a restart of the server is stored once', async () => {
  const server = await serve('23.10');
  await using db = await openKurrent(server.url);
  const stream = newStream();
  const batches = Array.from({ length: 5 }, () => newEvents(2));
  for (const batch of batches) await db.store.append(stream, batch);
  await server.restart();
  for (const batch of batches) {
    const { isDuplicate } = await again(() => db.store.append(stream, batch));
    assert.equal(isDuplicate, true);
  }
  assert.deepEqual(await storedIds(db.store, stream), idsOf(batches.flat()));
});

for (const filter of [undefined, { types: ['account.credited.v1'] }, { tenant: 'core' }]) {
  const title = filter === undefined ? 'without a filter' : Object.keys(filter).join();
  test(`a subscriber whose reads go to a node that lags misses nothing: ${title}`, async ({
    signal,
  }) => {
    const server = await serve('cluster');
    await using db = await openKurrent(server.url, { pollIntervalMs: 100 });
    await using other = await openKurrent(server.nodes[0]?.url ?? '');
    const { store } = db;
    const stream = newStream(unique('c'));
    const events = newEvents(60);
    const lagging = server.nodes.at(-1);
    await other.store.append(stream, [newEvent()]);
    await using follower = follow(store.subscribe({ after: 'end', filter, signal }));
    await follower.caughtUp();
    const end = newEvent();
    const received = follower.before(end.eventId);
    for (let at = 0; at < events.length; at += 6) {
      const release = lagging?.holdReplication();
      await other.store.append(stream, events.slice(at, at + 6));
      // The other connection sees the events while the subscriber reads from the node without them.
      for (let read = 0; read < 20; read += 1) {
        await store.readAll({ direction: 'backwards', limit: 1 }).toArray();
      }
      release?.();
    }
    await other.store.append(stream, [end]);
    assert.deepEqual(idsOf(await received), idsOf(events));
  });
}

test(
  'a subscriber misses nothing while the leader is frozen and another node takes over',
  { timeout: 60_000 },
  async ({ signal }) => {
    const server = await serve('cluster');
    await using db = await openKurrent(server.url, { pollIntervalMs: 100 });
    await using first = await openKurrent(server.nodes[0]?.url ?? '');
    await using second = await openKurrent(server.nodes[1]?.url ?? '');
    const stream = newStream(unique('c'));
    const [early, late, next] = [newEvents(10), newEvents(10), newEvents(10)] as const;
    const end = newEvent();
    await first.store.append(stream, [newEvent()]);
    await using follower = follow(db.store.subscribe({ after: 'end', signal }));
    await follower.caughtUp();
    const received = follower.before(end.eventId);
    await first.store.append(stream, early);
    // The node that the subscriber reads lags when the leader freezes.
    server.nodes.at(-1)?.holdReplication();
    await first.store.append(stream, late);
    const thaw = server.nodes[0]?.freeze();
    server.elect(1);
    await second.store.append(stream, next);
    thaw?.();
    await second.store.append(stream, [end]);
    assert.deepEqual(idsOf(await received), idsOf([...early, ...late, ...next]));
  },
);
