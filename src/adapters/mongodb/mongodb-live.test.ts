// Change streams as the driver's documentation has them, not MongoDB's: no server of ours has any.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { CommitLog } from './commit-log.ts';
import { createMongodbLive, type LiveOptions } from './mongodb-live.ts';
import type { MongodbCollections } from './mongodb-schema.ts';

class FakeChangeStream extends EventEmitter {
  closed = false;
  async close(): Promise<void> {
    this.closed = true;
  }
}

/** A log that has as many events as it is told, and readers of it. */
function liveOn(options: Partial<LiveOptions>) {
  const opened: FakeChangeStream[] = [];
  const failures: unknown[] = [];
  let committed = 0;
  let head = 0;
  const log = {
    get head() {
      return { commit: head, position: head };
    },
    async advance() {
      const isNew = committed > head;
      head = committed;
      if (isNew) live.wakeAll();
      return log.head;
    },
  };
  const commits = {
    watch() {
      const stream = new FakeChangeStream();
      opened.push(stream);
      return stream;
    },
  };
  const live = createMongodbLive(
    { commits } as unknown as MongodbCollections,
    () => log as unknown as CommitLog,
    {
      hasChangeStreams: true,
      // So that only a change can be what woke a reader.
      pollIntervalMs: 3_600_000,
      onFailure: (error) => failures.push(error),
      ...options,
    },
  );
  return { live, opened, failures, commit: () => (committed += 1) };
}

const { signal } = new AbortController();
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a change wakes a reader without a poll, and one stream serves all readers', async () => {
  const { live, opened, commit } = liveOn({});
  const readers = [live.whenMore(0, signal), live.whenMore(0, signal)];
  await turn();
  assert.equal(opened.length, 1);
  commit();
  opened[0]?.emit('change', {});
  await Promise.all(readers);
  await live[Symbol.asyncDispose]();
  assert.ok(opened[0]?.closed);
});

test('what was committed while the change stream was being opened is not slept through', async () => {
  const { live, opened, commit } = liveOn({});
  const reader = live.whenMore(0, signal);
  await turn();
  commit();
  opened[0]?.emit('init', {});
  await reader;
  await live[Symbol.asyncDispose]();
});

test('a change stream that breaks is told, closed, and stood in for by looking', async () => {
  const { live, opened, failures, commit } = liveOn({ pollIntervalMs: 5 });
  const reader = live.whenMore(0, signal);
  await turn();
  opened[0]?.emit('error', new Error('not allowed'));
  assert.equal(String(failures[0]), 'Error: not allowed');
  assert.ok(opened[0]?.closed);
  commit();
  await reader;
  assert.equal(opened.length, 1);
  await live[Symbol.asyncDispose]();
});

test('without change streams a reader looks', async () => {
  const { live, opened, commit } = liveOn({ hasChangeStreams: false, pollIntervalMs: 5 });
  const reader = live.whenMore(0, signal);
  await turn();
  commit();
  await reader;
  assert.equal(opened.length, 0);
  await live[Symbol.asyncDispose]();
});

test('closing wakes whoever waits', async () => {
  const { live } = liveOn({});
  const reader = live.whenMore(0, signal);
  await live[Symbol.asyncDispose]();
  await reader;
  await live.whenMore(0, signal);
});
