// Cases of the adapter while its server is killed and restarted, on any server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rejectsWith } from '../../src/testing/assertions.ts';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  storedIds,
} from '../../src/testing/conformance/store/fixture.ts';

/** A server that a test kills and starts again, on the same port with the same data. */
export interface KillableServer extends AsyncDisposable {
  readonly url: string;
  kill(): Promise<void>;
  startAgain(): Promise<void>;
}

const timeout = 400_000;

/** `serve` starts a server, or returns the one that all cases share. */
export function recoveryCases(serve: () => Promise<KillableServer>): void {
  test('without a server every operation fails with a retryable error', { timeout }, async () => {
    await using server = await serve();
    await using db = await openKurrent(server.url);
    const { store } = db;
    const stream = newStream();
    await store.append(stream, newEvents(3));
    await server.kill();
    for (const use of [
      () => store.append(stream, [newEvent()]),
      () => store.readStream(stream).toArray(),
      () => store.readAll({ limit: 1 }).toArray(),
      () => store.streamInfo(stream),
      () => store.setStreamMetadata(stream, { maxCount: 5 }),
      () => store.deleteStream(stream),
      () => store.head(),
      () => store.forget('person-1'),
    ]) {
      const { retryable } = await rejectsWith(use, 'STORE_UNAVAILABLE');
      assert.equal(retryable, true);
    }
  });

  test(
    'after a restart of the server all operations work with the same store',
    { timeout },
    async () => {
      await using server = await serve();
      await using db = await openKurrent(server.url);
      const { store } = db;
      const stream = newStream();
      const events = newEvents(6);
      await store.append(stream, events.slice(0, 3));
      for (let round = 0; round < 2; round += 1) {
        await server.kill();
        await rejectsWith(() => store.readStream(stream).toArray(), 'STORE_UNAVAILABLE');
        await rejectsWith(() => store.append(stream, [newEvent()]), 'STORE_UNAVAILABLE');
        await server.startAgain();
        await again(() => store.append(stream, events.slice(3)));
        assert.deepEqual(await again(() => storedIds(store, stream)), idsOf(events));
      }
    },
  );

  test('a failed first read does not affect later reads', { timeout }, async () => {
    await using server = await serve();
    // Opening requests only the server features, so the bridge has no connection yet.
    await using db = await openKurrent(server.url);
    const { store } = db;
    const stream = newStream();
    await server.kill();
    await rejectsWith(() => store.readStream(stream).toArray(), 'STORE_UNAVAILABLE');
    await server.startAgain();
    assert.deepEqual(await again(() => store.readStream(stream).toArray()), []);
    await store.append(stream, [newEvent()]);
    assert.equal((await store.readStream(stream).toArray()).length, 1);
  });

  test('live subscriptions resume without gaps and duplicates', { timeout }, async ({ signal }) => {
    await using server = await serve();
    await using db = await openKurrent(server.url);
    const { store } = db;
    const stream = newStream();
    const events = newEvents(30);
    const after = await store.head();
    await using all = follow(store.subscribe({ after, signal, pageSize: 4 }));
    await using one = follow(store.subscribeToStream(stream, { signal, pageSize: 4 }));
    await all.caughtUp();
    await one.caughtUp();
    for (let at = 0; at < events.length; at += 10) {
      const batch = events.slice(at, at + 10);
      await again(() => store.append(stream, batch));
      await Promise.all([all.count(at + 10), one.count(at + 10)]);
      await server.kill();
      await server.startAgain();
    }
    const last = newEvent();
    await again(() => store.append(stream, [last]));
    for (const follower of [all, one]) {
      assert.deepEqual(idsOf(await follower.count(31)), idsOf([...events, last]));
    }
  });

  test('repeating an append whose reply was lost has no effect', { timeout }, async () => {
    await using server = await serve();
    await using db = await openKurrent(server.url);
    const { store } = db;
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    const batches = Array.from({ length: 40 }, () => newEvents(2));
    const outcomes = Promise.allSettled(batches.map((batch) => store.append(stream, batch)));
    await server.kill();
    await outcomes;
    await server.startAgain();
    for (const batch of batches) await again(() => store.append(stream, batch));
    const ids = await again(() => storedIds(store, stream));
    assert.equal(ids.length, 81);
    assert.equal(new Set(ids).size, 81);
  });

  test('opening a store without a server fails', { timeout }, async () => {
    await using server = await serve();
    await server.kill();
    const { retryable } = await rejectsWith(() => openKurrent(server.url), 'STORE_UNAVAILABLE');
    assert.equal(retryable, true);
  });
}

/** Repeats the work until the server is available. */
export async function again<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, 'STORE_UNAVAILABLE') || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
