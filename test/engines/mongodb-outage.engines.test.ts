// The server is killed, stopped or paused: calls fail with a retryable error, and the same store works
// again after the outage.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { openMongo } from '../../src/engines/mongodb/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import type { EventStore } from '../../src/store/index.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import { follow } from '../../src/testing/conformance/store/fixture.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { assertNoViolations, checkDelivered } from '../../src/testing/history.ts';
import {
  assertOutage,
  inTime,
  newEvent,
  newEvents,
  readLocations,
  rejection,
  retryDuringOutage,
  streamName,
  until,
} from '../store/rig.ts';
import type { FerretdbServer } from '../../src/testing/support/mongodb/ferretdb-server.ts';
import type { ReaderInput, ReaderMessage } from './mongodb-reader-main.ts';
import { onFerretdb } from '../../src/testing/support/mongodb/mongodb-targets.ts';

onFerretdb('an outage', (target) => {
  const server = (): FerretdbServer => target.server() as FerretdbServer;
  const open = async (database = target.newDatabase()): Promise<EventStore> => {
    // The driver waits this long for a server before it fails.
    const url = `${target.url()}/?serverSelectionTimeoutMS=1000`;
    return ownedRole(await openMongo(url, { database, pollIntervalMs: 20 }), 'store');
  };

  afterEach(() => server().start());

  for (const how of ['stop', 'kill'] as const) {
    test(`a store and its subscriptions continue after an outage of the server (${how})`, async ({
      signal,
    }) => {
      await using store = await open();
      await using follower = follow(store.subscribe({ signal, pageSize: 2 }));
      const types = ['item.changed.v1'];
      await using filtered = follow(store.subscribe({ signal, filter: { types } }));
      await store.append(streamName('a'), newEvents('before', 3));
      await Promise.all([follower.count(3), filtered.caughtUp()]);

      const inFlight = Array.from({ length: 30 }, (_, index) =>
        store.append(streamName(index), newEvents(`flight-${index}`, 2)),
      );
      await server()[how]();
      const outcomes = await inTime('every append settles', Promise.allSettled(inFlight));
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') assertOutage(outcome.reason);
      }
      const stream = streamName('a');
      for (const work of [
        () => store.append(stream, [newEvent('never')]),
        () => store.readStream(stream).toArray(),
        () => store.readAll().toArray(),
        () => store.findEvent(stream, 'before-0'),
        () => store.streamInfo(stream),
        () => store.head(),
        () => store.scavenge(),
        () => store.forget('a-person'),
      ]) {
        assertOutage(await inTime('the rejection', rejection(work())));
      }

      await server().start();
      const marker = newEvent('marker', { type: 'item.changed.v1' });
      await retryDuringOutage(() => store.append(streamName('a'), [marker]));
      await Promise.all([follower.before('marker'), filtered.before('marker')]);
      const stored = await readLocations(store);
      assertNoViolations(checkDelivered(stored, follower.events), how);
      const ids = new Set(stored.map(({ eventId }) => eventId));
      for (const [index, outcome] of outcomes.entries()) {
        const found = [0, 1].filter((each) => ids.has(`flight-${index}-${each}`)).length;
        assert.ok(found === 2 || (found === 0 && outcome.status === 'rejected'), `append ${index}`);
      }
      assert.ok(!ids.has('never'));
    });
  }

  test('appends queued after a failed append fail immediately, not batch by batch', async () => {
    await using store = await open();
    await store.append(streamName('a'), [newEvent('before')]);
    await server().kill();
    // The test sends more appends than one commit can take.
    const appends = Array.from({ length: 2_000 }, (_, index) =>
      store.append(streamName(index), [newEvent(`e${index}`)]),
    );
    const outcomes = await inTime('all appends fail', Promise.allSettled(appends), 20_000);
    for (const outcome of outcomes) {
      assert.equal(outcome.status, 'rejected');
      if (outcome.status === 'rejected') assertOutage(outcome.reason);
    }
    await server().start();
    await retryDuringOutage(() => store.append(streamName('a'), [newEvent('after')]));
  });

  test('a process that only waits for events survives an outage', async () => {
    const database = target.newDatabase();
    await using store = await open(database);
    const script = new URL('./mongodb-reader-main.ts', import.meta.url);
    const input: ReaderInput = { url: target.url(), database };
    await using reader = startChild(script, { input });
    await reader.message(
      (message): message is ReaderMessage => (message as ReaderMessage).kind === 'caughtUp',
    );
    await server().kill();
    assertOutage(await rejection(store.head()));
    await server().start();
    await retryDuringOutage(() => store.append(streamName('a'), [newEvent('marker')]));
    await inTime(
      'the marker',
      reader.message((message): message is ReaderMessage => {
        const report = message as ReaderMessage;
        return report.kind === 'event' && report.eventId === 'marker';
      }),
    );
  });

  test('appends wait while the server is paused, and do not fail', async ({ signal }) => {
    await using store = await open();
    await using follower = follow(store.subscribe({ signal }));
    await store.append(streamName('a'), newEvents('before', 1));
    const pausedAt = performance.now();
    server().pause();
    let appends: Promise<unknown>;
    try {
      appends = Promise.all(
        [0, 1, 2].map((index) => store.append(streamName(index), newEvents(`during-${index}`, 1))),
      );
      await until('the pause lasts two seconds', () => performance.now() - pausedAt > 2_000);
    } finally {
      server().resume();
    }
    await inTime('the appends of the pause', appends);
    await follower.count(4);
    assertNoViolations(
      checkDelivered(await readLocations(store), follower.events),
      'after a pause',
    );
  });

  test('closing settles every append that is in progress, and acknowledged appends are stored', async () => {
    const database = target.newDatabase();
    const store = await open(database);
    const appends = Array.from({ length: 200 }, (_, index) =>
      store.append(streamName(index % 7), [newEvent(`e${index}`)]),
    );
    const settled = Promise.allSettled(appends);
    await inTime('closing', store[Symbol.asyncDispose]());
    const outcomes = await inTime('every append settles', settled);
    await using again = await open(database);
    const ids = new Set((await readLocations(again)).map(({ eventId }) => eventId));
    for (const [index, outcome] of outcomes.entries()) {
      assert.equal(ids.has(`e${index}`), outcome.status === 'fulfilled', `append ${index}`);
      if (outcome.status === 'rejected') assert.ok(hasCode(outcome.reason, 'STORE_CLOSED'));
    }
  });

  test('closing settles every read that is in progress', async () => {
    const store = await open();
    await store.append(streamName('a'), newEvents('a', 100));
    const reads = Array.from({ length: 30 }, () => store.readStream(streamName('a')).toArray());
    const settled = Promise.allSettled(reads);
    await inTime('closing', store[Symbol.asyncDispose]());
    for (const outcome of await inTime('every read settles', settled, 60_000)) {
      if (outcome.status === 'fulfilled') assert.equal(outcome.value.length, 100);
      else assert.ok(hasCode(outcome.reason, 'STORE_CLOSED'), String(outcome.reason));
    }
  });

  test('closing works while the server is down', async () => {
    const store = await open();
    const waiting = store.subscribe()[Symbol.asyncIterator]();
    assert.equal((await waiting.next()).value?.kind, 'caughtUp');
    const ending = rejection(waiting.next());
    await server().kill();
    const append = rejection(store.append(streamName('a'), [newEvent('never')]));
    await inTime('closing', store[Symbol.asyncDispose]());
    const error = await append;
    // The code depends on whether the append had reached the database when the store was closed.
    assert.ok(hasCode(error, 'STORE_UNAVAILABLE') || hasCode(error, 'STORE_CLOSED'));
    assert.ok(hasCode(await inTime('the end of the subscription', ending), 'STORE_CLOSED'));
  });

  test('opening fails with a typed error while the server is down', async () => {
    const database = target.newDatabase();
    await server().kill();
    assertOutage(await inTime('opening', rejection(open(database))));
    await server().start();
    await using store = await open(database);
    assert.deepEqual(await readLocations(store), []);
  });
});
