// Processes that are killed or stopped in the middle of an append, seen by other processes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MongoClient } from 'mongodb';
import { openMongo } from '../../src/engines/mongodb/index.ts';
import type { EventStore, StreamAppend } from '../../src/store/index.ts';
import {
  assertDense,
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
} from '../../src/testing/conformance/store/fixture.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { faultPoints } from './faulty-db.ts';
import type { FaultyInput, FaultyMessage } from './mongodb-faulty-main.ts';
import { messageOfKind } from '../store/rig.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import { onEachMongodb } from '../../src/testing/support/mongodb/mongodb-targets.ts';

const script = new URL('./mongodb-faulty-main.ts', import.meta.url);

const hasKind = messageOfKind<FaultyMessage>();

onEachMongodb('a writer that fails in the middle of an append', (target) => {
  const open = async (database: string): Promise<EventStore> =>
    ownedRole(await openMongo(target.url(), { database, pollIntervalMs: 20 }), 'store');
  const startFaulty = (input: Omit<FaultyInput, 'url'>): Child =>
    startChild(script, { input: { ...input, url: target.url() } satisfies FaultyInput });
  const rawOf = async (database: string, collection: string) => {
    await using client = new MongoClient(target.url());
    return await client.db(database).collection(collection).find().sort({ _id: 1 }).toArray();
  };

  for (const point of faultPoints) {
    test(`killed ${point}: other processes see the whole append or nothing, and continue`, async ({
      signal,
    }) => {
      const database = target.newDatabase();
      await using store = await open(database);
      await using follower = follow(store.subscribe({ signal }));
      const [a, b] = [newStream(), newStream()];
      const first = newEvents(2);
      await store.append(a, first);
      const appends: StreamAppend[] = [
        { stream: a, events: newEvents(3), expected: 1 },
        { stream: b, events: newEvents(4), expected: 'none' },
      ];
      const child = startFaulty({ database, point, signal: 'SIGKILL', appends });
      assert.equal(await child.ended, 'SIGKILL', child.errors());

      const later = [newEvent(), newEvent()];
      for (const event of later) await store.append(a, [event]);
      const stored = point === 'before the commit' ? [] : appends.flatMap(({ events }) => events);
      const expected = idsOf([...first, ...stored, ...later]);
      assert.deepEqual(idsOf(await follower.count(expected.length)), expected);
      assertDense(follower.events);
      assert.deepEqual(await store.readAll().toArray(), follower.events);

      // A store that is opened later reads the same events, and nothing is left to copy.
      await using again = await open(database);
      assert.deepEqual(await again.readAll().toArray(), follower.events);
      await again[Symbol.asyncDispose]();
      assert.equal((await rawOf(database, 'events')).length, expected.length);
      for (const commit of await rawOf(database, 'events_commits')) {
        assert.equal(commit['events'], undefined);
      }
    });
  }

  for (const expected of [1, 'any'] as const) {
    test(`stopped before the commit and resumed after others appended: a new number is used, expected ${expected}`, async ({
      signal,
    }) => {
      const database = target.newDatabase();
      await using store = await open(database);
      await using follower = follow(store.subscribe({ signal }));
      const stream = newStream();
      const [first, own, others] = [newEvents(2), newEvents(2), newEvents(3)];
      await store.append(stream, first);
      const appends = [{ stream, events: own, expected }];
      const point = 'before the commit';
      await using child = startFaulty({ database, point, signal: 'SIGSTOP', appends });
      await child.message(hasKind('fault'));
      for (const event of others) await store.append(stream, [event]);
      assert.deepEqual(idsOf(await follower.count(5)), idsOf([...first, ...others]));

      process.kill(child.pid, 'SIGCONT');
      if (expected === 'any') {
        const { revisions } = await child.message(hasKind('appended'));
        assert.deepEqual(revisions, [6]);
        await follower.count(7);
      } else {
        const { code } = await child.message(hasKind('rejected'));
        assert.equal(code, 'VERSION_CONFLICT');
      }
      await child.ended;
      const all = [...first, ...others, ...(expected === 'any' ? own : [])];
      assert.deepEqual(idsOf(await store.readAll().toArray()), idsOf(all));
      assert.deepEqual(idsOf(follower.events), idsOf(all));
    });
  }

  for (const point of ['after the commit', 'in the middle of the copy'] as const) {
    test(`stopped ${point} and resumed later: other processes finish the append, and the writer changes nothing`, async () => {
      const database = target.newDatabase();
      await using store = await open(database);
      const stream = newStream();
      const events = newEvents(5);
      const appends = [{ stream, events, expected: 'none' as const }];
      await using child = startFaulty({ database, point, signal: 'SIGSTOP', appends });
      await child.message(hasKind('fault'));
      assert.deepEqual(idsOf(await store.readStream(stream).toArray()), idsOf(events));
      await store.append(stream, [newEvent()], { expected: 4 });
      await store.head();
      const before = await rawOf(database, 'events');
      assert.equal(before.length, 6);

      process.kill(child.pid, 'SIGCONT');
      const { revisions } = await child.message(hasKind('appended'));
      assert.deepEqual(revisions, [4]);
      await child.ended;
      assert.deepEqual(await rawOf(database, 'events'), before);
    });
  }

  test('killed after storing one part of a large append: scavenging removes only that part', async () => {
    const database = target.newDatabase();
    await using store = await open(database);
    const stream = newStream();
    const kept = newEvent();
    await store.append(stream, [kept]);
    const appends = [{ stream, events: newEvents(20) }];
    const point = 'after the first part';
    const payloadChars = 900_000;
    const child = startFaulty({ database, point, signal: 'SIGKILL', appends, payloadChars });
    assert.equal(await child.ended, 'SIGKILL', child.errors());
    assert.equal((await rawOf(database, 'events_commit_parts')).length, 1);

    await store.scavenge();
    // The commit number of the part is still free, so the append could still be committed.
    assert.equal((await rawOf(database, 'events_commit_parts')).length, 1);
    await store.append(stream, [newEvent()]);
    await store.scavenge();
    assert.deepEqual(await rawOf(database, 'events_commit_parts'), []);
    assert.equal((await store.readStream(stream).toArray()).length, 2);
  });

  test('an append larger than one document is stored whole, and its parts are removed', async () => {
    const database = target.newDatabase();
    const store = await open(database);
    const stream = newStream();
    const events = newEvents(25, { payload: '€'.repeat(300_000) });
    await store.append(stream, events, { expected: 'none' });
    await using other = await open(database);
    assert.deepEqual(idsOf(await other.readStream(stream).toArray()), idsOf(events));
    assert.equal((await store.append(stream, events, { expected: 'none' })).isDuplicate, true);
    await store[Symbol.asyncDispose]();
    assert.deepEqual(await rawOf(database, 'events_commit_parts'), []);
  });
});
