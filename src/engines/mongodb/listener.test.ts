// Simulates change streams as the driver documents them, because the test servers do not support them.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { CommitLog } from './commit-log.ts';
import { createMongodbListener, type ListenerOptions } from './listener.ts';
import type { MongodbCollections } from './collections.ts';

class FakeChangeStream extends EventEmitter {
  closed = false;
  async close(): Promise<void> {
    this.closed = true;
  }
}

/** Creates a listener on a log to which the test commits. */
function listenerOn(options: Partial<ListenerOptions>) {
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
      if (isNew) listener.wakeAll();
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
  const listener = createMongodbListener(
    { commits } as unknown as MongodbCollections,
    () => log as unknown as CommitLog,
    {
      hasChangeStreams: true,
      // Only a change event can wake a reader.
      pollIntervalMs: 3_600_000,
      onFailure: (error) => failures.push(error),
      ...options,
    },
  );
  return { listener, opened, failures, commit: () => (committed += 1) };
}

const { signal } = new AbortController();
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a change event wakes readers without a poll, and one change stream serves all readers', async () => {
  const { listener, opened, commit } = listenerOn({});
  const readers = [listener.whenMore(0, signal), listener.whenMore(0, signal)];
  await turn();
  assert.equal(opened.length, 1);
  commit();
  opened[0]?.emit('change', {});
  await Promise.all(readers);
  await listener[Symbol.asyncDispose]();
  assert.ok(opened[0]?.closed);
});

test('a commit during the opening of the change stream wakes the reader', async () => {
  const { listener, opened, commit } = listenerOn({});
  const reader = listener.whenMore(0, signal);
  await turn();
  commit();
  opened[0]?.emit('init', {});
  await reader;
  await listener[Symbol.asyncDispose]();
});

test('a failed change stream is reported, closed and replaced by polling', async () => {
  const { listener, opened, failures, commit } = listenerOn({ pollIntervalMs: 5 });
  const reader = listener.whenMore(0, signal);
  await turn();
  opened[0]?.emit('error', new Error('not allowed'));
  assert.equal(String(failures[0]), 'Error: not allowed');
  assert.ok(opened[0]?.closed);
  commit();
  await reader;
  assert.equal(opened.length, 1);
  await listener[Symbol.asyncDispose]();
});

test('without change streams a reader polls', async () => {
  const { listener, opened, commit } = listenerOn({ hasChangeStreams: false, pollIntervalMs: 5 });
  const reader = listener.whenMore(0, signal);
  await turn();
  commit();
  await reader;
  assert.equal(opened.length, 0);
  await listener[Symbol.asyncDispose]();
});

test('closing wakes waiting readers', async () => {
  const { listener } = listenerOn({});
  const reader = listener.whenMore(0, signal);
  await listener[Symbol.asyncDispose]();
  await reader;
  await listener.whenMore(0, signal);
});
