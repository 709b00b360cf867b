// Several processes on one SQLite file.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { assertNoViolations, checkDelivered } from '../../src/testing/history.ts';
import { follow, startReader } from './followers.ts';
import { checkHistories, runWriters, startWriter } from './kill-writers.ts';
import type { LockHolderInput } from './lock-holder-main.ts';
import {
  createWorkspace,
  eventTypes,
  inRounds,
  inTime,
  isText,
  newEvent,
  newEvents,
  readLocations,
  soakMinutes,
  streamName,
  type Workspace,
} from './rig.ts';

const [, changed] = eventTypes;
/** So long that only the file watcher can wake a reader in time. */
const pollIntervalMs = 600_000;

const pathIn = (workspace: Workspace): string => join(workspace.folder, 'events.db');
const urlIn = (workspace: Workspace): string => `sqlite:${pathIn(workspace)}`;

/** Writer processes, each with 8 concurrent operations. */
const { writing, operations } =
  soakMinutes > 0 ? { writing: [0, 1, 2], operations: 100 } : { writing: [0, 1], operations: 60 };

test('every reader gets all events once and in order while several processes write', () =>
  inRounds(async (seed) => {
    await using workspace = await createWorkspace();
    const url = urlIn(workspace);
    const input = { engine: 'sqlite', url, pollIntervalMs } as const;
    await using one = startReader({
      ...input,
      subscriptions: [
        { name: 'all', pageSize: 3, filter: {} },
        { name: 'one type', pageSize: 7, filter: { types: [changed] } },
      ],
    });
    await using two = startReader({
      ...input,
      subscriptions: [
        { name: 'some streams', pageSize: 5, filter: { streamPattern: '-(1|2|end)$' } },
      ],
    });
    await Promise.all([one.follower('all').caughtUp(), two.follower('some streams').caughtUp()]);

    const plan = { engine: 'sqlite', url, workspace, streams: 20, inFlight: 8 } as const;
    const writers = writing.map((index) => {
      const own = { name: `w${index}`, seed: seed + index, transactionsPercent: 0, operations };
      return startWriter({ ...plan, ...own });
    });
    await runWriters(writers);

    await using db = await openSqlite(url);
    const { store } = db;
    await checkHistories(store, workspace, seed);
    await store.append(streamName('end'), [newEvent('marker', { type: changed })]);
    const stored = await readLocations(store);
    const changes = new Set<string>();
    for await (const { type, eventId } of store.readAll())
      if (type === changed) changes.add(eventId);
    for (const { name, follower, expected } of [
      { name: 'all', follower: one.follower('all'), expected: stored },
      {
        name: 'one type',
        follower: one.follower('one type'),
        expected: stored.filter(({ eventId }) => changes.has(eventId)),
      },
      {
        name: 'some streams',
        follower: two.follower('some streams'),
        expected: stored.filter(({ stream }) => /-(1|2|end)$/.test(stream)),
      },
    ]) {
      await follower.has('marker');
      const run = `MILLRACE_SEED=${seed}, subscription '${name}'`;
      assertNoViolations(checkDelivered(expected, follower.delivered), run);
    }
  }));

test('a process that only waits for events stays alive, and receives those of another process', async () => {
  await using workspace = await createWorkspace();
  await using db = await openSqlite(urlIn(workspace));
  const { store } = db;
  await using reader = startReader({
    engine: 'sqlite',
    url: urlIn(workspace),
    pollIntervalMs,
    subscriptions: [{ name: 'all', pageSize: 10, filter: {} }],
  });
  await reader.follower('all').caughtUp();
  for (const name of ['one', 'two', 'three']) {
    await store.append(streamName('a'), [newEvent(name)]);
    await reader.follower('all').has(name);
  }
});

test('a killed writer releases the write lock, and its uncommitted write disappears', async () => {
  await using workspace = await createWorkspace();
  await using db = await openSqlite(urlIn(workspace));
  const { store } = db;
  await store.append(streamName('a'), newEvents('before', 2));
  await using holder = startChild(new URL('./lock-holder-main.ts', import.meta.url), {
    input: { path: pathIn(workspace) } satisfies LockHolderInput,
  });
  await holder.message(isText('locked'));
  // Reading continues while writing waits.
  assert.equal((await readLocations(store)).length, 2);
  const append = store.append(streamName('a'), newEvents('after', 2));
  await holder.kill();
  assert.equal((await inTime('the append', append)).revision, 3);
  assert.equal(await store.streamInfo('half-written'), undefined);
});

test('appends that wait too long for the lock all fail at the same time', async () => {
  await using workspace = await createWorkspace();
  await using db = await openSqlite(urlIn(workspace), { busyTimeoutMs: 1_000 });
  const { store } = db;
  const other = new DatabaseSync(pathIn(workspace), { timeout: 30_000 });
  other.exec('begin immediate');
  const appends = Array.from({ length: 100 }, (_, index) =>
    store.append(streamName(index), [newEvent(`e${index}`)]),
  );
  const outcomes = await inTime('a hundred appends', Promise.allSettled(appends), 30_000);
  for (const outcome of outcomes) {
    assert.ok(outcome.status === 'rejected');
    assert.ok(hasCode(outcome.reason, 'STORE_UNAVAILABLE') && outcome.reason.retryable);
    assert.match(outcome.reason.message, /locked/);
  }
  other.exec('rollback');
  other.close();
  await store.append(streamName('a'), [newEvent('again')]);
  assert.equal((await readLocations(store)).length, 1);
});

test('several stores can open a new file at the same time', async () => {
  for (let round = 0; round < 2; round += 1) {
    await using workspace = await createWorkspace();
    const opening = Array.from({ length: 6 }, () => openSqlite(urlIn(workspace)));
    const opened = await Promise.allSettled(opening);
    try {
      const handles = opened.map((each) => {
        if (each.status === 'rejected') throw each.reason as Error;
        return each.value;
      });
      await Promise.all(
        handles.map(({ store }, index) => store.append(streamName('a'), [newEvent(`e${index}`)])),
      );
      for (const { store } of handles) assert.equal((await readLocations(store)).length, 6);
    } finally {
      for (const each of opened) {
        if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]();
      }
    }
  }
});

test('writers that never pause let other writers append', async () => {
  await using workspace = await createWorkspace();
  await using greedy = await openSqlite(urlIn(workspace));
  await using modest = await openSqlite(urlIn(workspace));
  await using follower = follow(modest.store);
  let going = true;
  let count = 0;
  const busy = Array.from({ length: 16 }, async (_, index) => {
    for (; going; count += 1) {
      await greedy.store.append(streamName(index), [newEvent(`greedy-${index}-${count}`)]);
    }
  });
  try {
    for (let index = 0; index < 5; index += 1) {
      await modest.store.append(streamName('modest'), [newEvent(`modest-${index}`)]);
    }
  } finally {
    going = false;
    await Promise.all(busy);
  }
  await follower.has('modest-4');
  assert.ok(count > 5, `the busy store made only ${count} appends`);
});
