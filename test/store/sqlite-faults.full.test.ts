// SQLite on a full disk, and stores that are closed while they work.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { assertNoViolations, checkDelivered, checkStored } from '../../src/testing/history.ts';
import type { HistoryEntry } from '../../src/testing/history.ts';
import { follow } from './followers.ts';
import { createWorkspace, inTime, newEvent, readLocations, streamName } from './rig.ts';

interface SmallDisk extends AsyncDisposable {
  readonly folder: string;
}

/** Undefined if mounting is not allowed. */
async function mountSmallDisk(): Promise<SmallDisk | undefined> {
  const workspace = await createWorkspace();
  const folder = join(workspace.folder, 'disk');
  await mkdir(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    await workspace[Symbol.asyncDispose]();
    return undefined;
  }
  return {
    folder,
    async [Symbol.asyncDispose]() {
      execFileSync('umount', [folder], { stdio: 'ignore' });
      await workspace[Symbol.asyncDispose]();
    },
  };
}

const mayMount = process.getuid?.() === 0 && process.platform === 'linux';

test(
  `a full disk is reported, leaves no partial append, and the store works again after space is freed${mayMount ? '' : ' (needs root to mount a small disk)'}`,
  { skip: !mayMount },
  async (context) => {
    await using disk = await mountSmallDisk();
    if (disk === undefined) return context.skip('mounting is not allowed here');
    await using db = await openSqlite(`sqlite:${join(disk.folder, 'events.db')}`);
    const { store } = db;
    await using follower = follow(store, { pageSize: 5 });
    const history: HistoryEntry[] = [];
    const filler = join(disk.folder, 'filler');
    let failures = 0;

    const append = async (name: string, bytes: number): Promise<boolean> => {
      const streams = [streamName('a'), streamName(name)];
      const appends = streams.map((stream, index) => ({
        stream,
        events: [0, 1].map((each) =>
          newEvent(`${name}:${index}:${each}`, { payload: 'x'.repeat(bytes / 4) }),
        ),
      }));
      history.push({
        kind: 'invoke',
        operation: name,
        writes: appends.map(({ stream, events }) => ({
          stream,
          expected: 'any',
          eventIds: events.map(({ eventId }) => eventId),
        })),
      });
      try {
        const results = await store.appendMany(appends);
        history.push({ kind: 'ok', operation: name, results });
        return true;
      } catch (error) {
        assert.ok(hasCode(error, 'STORE_UNAVAILABLE'), String(error));
        assert.equal(error.retryable, true);
        assert.match(error.message, /disk is full/);
        // The disk had no room for the commit, so these events must never appear.
        history.push({ kind: 'fail', operation: name, reason: error.message });
        failures += 1;
        return false;
      }
    };

    for (const [round, fillerBytes] of [2_000_000, 1_000_000, 400_000].entries()) {
      writeFileSync(filler, Buffer.alloc(fillerBytes));
      // One of several concurrent appends may still fit.
      for (let step = 0; ; step += 1) {
        const names = [0, 1, 2].map((index) => `r${round}-s${step}-${index}`);
        const outcomes = await Promise.all(names.map((name) => append(name, 40_000)));
        if (outcomes.every((taken) => !taken)) break;
      }
      // Reading works on the full disk.
      assert.ok((await readLocations(store)).length > 0);
      await rm(filler);
      assert.ok(await append(`r${round}-after`, 1_000), 'the same store takes appends again');
    }
    assert.ok(failures >= 9, `only ${failures} appends failed`);
    await store.append(streamName('a'), [newEvent('marker')]);
    await follower.has('marker');
    const stored = await readLocations(store);
    const marker: HistoryEntry = {
      kind: 'invoke',
      operation: 'marker',
      writes: [{ stream: streamName('a'), expected: 'any', eventIds: ['marker'] }],
    };
    assertNoViolations(checkStored([...history, marker], stored), 'on a full disk');
    assertNoViolations(checkDelivered(stored, follower.delivered), 'on a full disk');
  },
);

test('closing settles every append that is in progress, and acknowledged appends are stored', async () => {
  await using workspace = await createWorkspace();
  const url = `sqlite:${join(workspace.folder, 'events.db')}`;
  const db = await openSqlite(url);
  const { store } = db;
  const appends = Array.from({ length: 2_000 }, (_, index) =>
    store.append(streamName(index % 7), [newEvent(`e${index}`)]),
  );
  const settled = Promise.allSettled(appends);
  // After the first append, others are in the middle of a commit.
  await appends[0];
  const late = Array.from({ length: 100 }, (_, index) =>
    store.append(streamName('late'), [newEvent(`late${index}`)]),
  );
  const settledLate = Promise.allSettled(late);
  await inTime('closing', db[Symbol.asyncDispose]());
  const outcomes = await inTime('every append settles', settled);
  await using again = await openSqlite(url);
  const ids = new Set((await readLocations(again.store)).map(({ eventId }) => eventId));
  const check = (id: string, outcome: PromiseSettledResult<unknown>): void => {
    assert.equal(ids.has(id), outcome.status === 'fulfilled', id);
    if (outcome.status === 'rejected') assert.ok(hasCode(outcome.reason, 'STORE_CLOSED'));
  };
  for (const [index, outcome] of outcomes.entries()) check(`e${index}`, outcome);
  for (const [index, outcome] of (await settledLate).entries()) check(`late${index}`, outcome);
});

test('closing ends a waiting subscription and one whose consumer is busy', async () => {
  await using workspace = await createWorkspace();
  const db = await openSqlite(`sqlite:${join(workspace.folder, 'events.db')}`);
  const { store } = db;
  const waiting = store.subscribe()[Symbol.asyncIterator]();
  const busy = store.subscribe()[Symbol.asyncIterator]();
  assert.equal((await waiting.next()).value?.kind, 'caughtUp');
  assert.equal((await busy.next()).value?.kind, 'caughtUp');
  const next = assert.rejects(waiting.next(), (error) => hasCode(error, 'STORE_CLOSED'));
  await db[Symbol.asyncDispose]();
  await inTime('the end of the waiting subscription', next);
  await inTime(
    'the end of the busy subscription',
    assert.rejects(busy.next(), (error) => hasCode(error, 'STORE_CLOSED')),
  );
});
