import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextTurn } from '../../../foundation/async/next-turn.ts';
import type { EventStore, FeedItem } from '../../../store/event-store.ts';
import { newEvent, newStream } from '../../../testing/conformance/store/fixture.ts';
import { sqliteMemoryFile } from '../connection/memory-file.ts';
import { sqliteEventStore } from './event-store.ts';

/** Resolves when the reader waits; `next` is its next item. */
async function liveReader(store: EventStore): Promise<{ next: Promise<FeedItem | undefined> }> {
  const feed = store.subscribe()[Symbol.asyncIterator]();
  assert.equal((await feed.next()).value?.kind, 'caughtUp');
  const next = feed.next().then(({ value }) => value ?? undefined);
  await nextTurn();
  return { next };
}

test('in memory, an append succeeds although the check for waiting readers fails', async () => {
  await using file = sqliteMemoryFile({});
  let isBroken = false;
  const dataVersion = (): number => {
    if (isBroken) throw new Error('the connection is broken');
    return file.reader.dataVersion();
  };
  await using store = sqliteEventStore({ ...file, reader: { ...file.reader, dataVersion } });
  const { next } = await liveReader(store);
  isBroken = true;
  await store.append(newStream(), [newEvent()]);
  isBroken = false;
  assert.equal((await next)?.kind, 'events');
});

test('in memory, an append succeeds although its listener fails', async () => {
  await using file = sqliteMemoryFile({});
  await using store = sqliteEventStore(file);
  const failure = new Error('the listener failed');
  file.onAppended(() => {
    throw failure;
  });
  const uncaught: unknown[] = [];
  process.setUncaughtExceptionCaptureCallback((error) => uncaught.push(error));
  try {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    assert.equal((await store.readStream(stream).toArray()).length, 1);
    await nextTurn();
  } finally {
    process.setUncaughtExceptionCaptureCallback(null);
  }
  assert.deepEqual(uncaught, [failure]);
});
