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

/**
 * `serve` starts a server, or returns the one that all files share. Two kills for all cases, because each server start
 * costs half a second of CPU.
 */
export function recoveryCases(serve: () => Promise<KillableServer>): void {
  test('the server is killed', { timeout: 400_000 }, async (context) => {
    const { signal } = context;
    await using server = await serve();
    await using db = await openKurrent(server.url);
    // Opening requests only the server features, so the bridge of this store has no connection yet.
    await using unused = await openKurrent(server.url);
    const { store } = db;
    const stream = newStream();
    const events = newEvents(20);
    const after = await store.head();
    await using all = follow(store.subscribe({ after, signal, pageSize: 4 }));
    await using one = follow(store.subscribeToStream(stream, { signal, pageSize: 4 }));
    await all.caughtUp();
    await one.caughtUp();
    await store.append(stream, events.slice(0, 10));
    await Promise.all([all.count(10), one.count(10)]);
    await server.kill();

    await context.test(
      'without a server every operation fails with a retryable error',
      async () => {
        for (const use of [
          () => store.append(stream, [newEvent()]),
          () => store.readStream(stream).toArray(),
          () => store.readAll({ limit: 1 }).toArray(),
          () => store.streamInfo(stream),
          () => store.setStreamMetadata(stream, { maxCount: 5 }),
          () => store.deleteStream(stream),
          () => store.head(),
          () => store.forget('person-1'),
          () => unused.store.readStream(stream).toArray(),
          () => openKurrent(server.url),
        ]) {
          const { retryable } = await rejectsWith(use, 'STORE_UNAVAILABLE');
          assert.equal(retryable, true);
        }
      },
    );

    await server.startAgain();
    await context.test('after a restart all operations work with the same store', async () => {
      await again(() => store.append(stream, events.slice(10)));
      assert.deepEqual(await again(() => storedIds(store, stream)), idsOf(events));
    });

    await context.test('a failed first read does not affect later reads', async () => {
      const other = newStream();
      assert.deepEqual(await again(() => unused.store.readStream(other).toArray()), []);
      await unused.store.append(other, [newEvent()]);
      assert.equal((await unused.store.readStream(other).toArray()).length, 1);
    });

    await context.test('repeating an append whose reply was lost has no effect', async () => {
      const interrupted = newStream();
      await store.append(interrupted, [newEvent()]);
      const batches = Array.from({ length: 40 }, () => newEvents(2));
      const outcomes = Promise.allSettled(batches.map((batch) => store.append(interrupted, batch)));
      await server.kill();
      await outcomes;
      await server.startAgain();
      for (const batch of batches) await again(() => store.append(interrupted, batch));
      const ids = await again(() => storedIds(store, interrupted));
      assert.equal(ids.length, 81);
      assert.equal(new Set(ids).size, 81);
    });

    await context.test('live subscriptions resume without gaps and duplicates', async () => {
      const last = newEvent();
      await again(() => store.append(stream, [last]));
      assert.deepEqual(idsOf(await one.count(21)), idsOf([...events, last]));
      const stored = idsOf(await again(() => store.readAll({ after }).toArray()));
      assert.equal(stored.length, 103);
      assert.deepEqual(idsOf(await all.count(103)), stored);
    });
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
