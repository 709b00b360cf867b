// Two connections to one store, like those of two processes.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { isForgotten, subjectHeader } from '../../../store/erasure.ts';
import {
  assertDense,
  conflict,
  follow,
  idsOf,
  last,
  needs,
  newEvent,
  newEvents,
  newStream,
  only,
  storedIds,
  turn,
  unique,
  type CaseBody,
  type CaseContext,
  type StoreCases,
} from './fixture.ts';

const crossProcess = (run: CaseBody) => needs('crossProcess', run);

export const crossProcessCases: StoreCases = {
  'each connection sees acknowledged appends of the other': crossProcess(async (context) => {
    const [one, two] = await pair(context);
    const stream = newStream();
    for (let revision = 0; revision < 6; revision += 2) {
      await one.append(stream, [newEvent()]);
      assert.equal((await two.readStream(stream).toArray()).length, revision + 1);
      await two.append(stream, [newEvent()], { expected: revision });
      assert.equal((await one.readStream(stream).toArray()).length, revision + 2);
    }
    const all = await allOf(two);
    assert.deepEqual(await allOf(one), all);
    for (const store of [one, two]) assert.ok((await store.head()) >= last(all).position);
  }),

  'a waiting subscription gets events of the other connection': crossProcess(async (context) => {
    const { signal } = context;
    const [one, two] = await pair(context);
    await using follower = follow(one.subscribe({ signal }));
    await follower.caughtUp();
    for (let count = 1; count <= 5; count += 1) {
      const next = follower.count(count);
      await turn();
      const event = newEvent();
      await two.append(newStream(), [event]);
      assert.equal((await next).at(-1)?.eventId, event.eventId);
    }
  }),

  'a stream subscription gets events of the other connection': crossProcess(async (context) => {
    const { signal } = context;
    const [one, two] = await pair(context);
    const stream = newStream();
    await using follower = follow(one.subscribeToStream(stream, { signal }));
    await follower.caughtUp();
    for (let count = 1; count <= 5; count += 1) {
      const next = follower.count(count);
      await two.append(stream, [newEvent()]);
      assert.equal((await next).length, count);
    }
  }),

  'detects a conflict across connections': crossProcess(async (context) => {
    const [one, two] = await pair(context);
    const stream = newStream();
    await one.append(stream, newEvents(2), { expected: 'none' });
    await conflict(() => two.append(stream, [newEvent()], { expected: 'none' }), {
      expected: 'none',
      actual: 1,
    });
    await two.append(stream, [newEvent()], { expected: 1 });
    await conflict(() => one.append(stream, [newEvent()], { expected: 1 }), {
      expected: 1,
      actual: 2,
    });
  }),

  'exactly one of the writers on both connections wins': crossProcess(async (context) => {
    const [one, two] = await pair(context);
    for (let round = 0; round < 5; round += 1) {
      const stream = newStream();
      const outcomes = await Promise.allSettled(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 === 0 ? one : two).append(stream, [newEvent()], { expected: 'none' }),
        ),
      );
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') continue;
        const error = await rejectsWith(
          () => Promise.reject(outcome.reason as Error),
          'VERSION_CONFLICT',
        );
        assert.equal(error.details['actual'], 0);
      }
      assert.equal((await one.readStream(stream).toArray()).length, 1);
    }
  }),

  'detects a duplicate across connections, also concurrently': crossProcess(async (context) => {
    const [one, two] = await pair(context);
    const stream = newStream();
    const events = newEvents(2);
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        (index % 2 === 0 ? one : two).append(stream, events),
      ),
    );
    const { exactDuplicates = true } = one.capabilities;
    const first = results.filter(({ isDuplicate }) => !isDuplicate);
    // Otherwise each connection may report one.
    assert.ok(first.length === 1 || (!exactDuplicates && first.length <= 2));
    assert.equal(new Set(results.map(({ position }) => position)).size, 1);
    assert.deepEqual(await storedIds(two, stream), idsOf(events));
  }),

  'delivers every event once while both connections append': crossProcess(async (context) => {
    const { signal } = context;
    const [one, two] = await pair(context);
    const shared = newStream();
    await using follower = follow(one.subscribe({ signal, pageSize: 7 }));
    const end = newEvent();
    const writing = Array.from({ length: 8 }, async (_, writer) => {
      const store = writer % 2 === 0 ? one : two;
      const own = newStream();
      for (let round = 0; round < 15; round += 1) {
        await store.append(round % 3 === 0 ? shared : own, newEvents(1 + (round % 2)));
      }
    });
    const [events] = await Promise.all([
      follower.before(end.eventId),
      Promise.all(writing).then(() => two.append(newStream(), [end])),
    ]);
    assert.equal(events.length, 176);
    assert.deepEqual(idsOf(events), idsOf((await allOf(two)).slice(0, -1)));
    assertDense(events);
  }),

  'one connection finds new types, tenants and categories of the other': crossProcess(
    async (context) => {
      const [one, two] = await pair(context);
      for (let round = 1; round < 5; round += 1) {
        const [from, to] = round % 2 === 0 ? [one, two] : [two, one];
        const tenant = `t${round}`;
        const category = `crm.contact.v${round}`;
        const type = `contact.added.v${round}`;
        for (const filter of [{ tenant }, { category }, { types: [type] }]) {
          assert.deepEqual(await to.readAll({ filter }).toArray(), []);
        }
        const event = newEvent({ tenant, type });
        await from.append(newStream(category, tenant), [event]);
        for (const filter of [{ tenant }, { category }, { types: [type] }]) {
          const found = only(await to.readAll({ filter }).toArray());
          assert.equal(found.eventId, event.eventId);
          assert.equal(found.type, type);
        }
      }
    },
  ),

  'metadata, deletions and tombstones apply to both connections': crossProcess(async (context) => {
    const [one, two] = await pair(context);
    const [truncated, deleted, dead] = [newStream(), newStream(), newStream()];
    for (const stream of [truncated, deleted, dead]) await one.append(stream, newEvents(3));
    assert.equal((await storedIds(two, truncated)).length, 3);
    await one.setStreamMetadata(truncated, { maxCount: 1 });
    await one.deleteStream(deleted);
    await one.tombstoneStream(dead);
    assert.equal((await storedIds(two, truncated)).length, 1);
    assert.deepEqual(await storedIds(two, deleted), []);
    await rejectsWith(() => two.append(dead, [newEvent()]), 'STREAM_DELETED');
    await rejectsWith(() => two.readStream(dead).toArray(), 'STREAM_DELETED');
    assert.equal((await two.append(deleted, [newEvent()], { expected: 'none' })).revision, 3);
    assert.equal((await storedIds(one, deleted)).length, 1);
  }),

  'a person forgotten on one connection is forgotten on the other': crossProcess(
    async (context) => {
      const [one, two] = await pair(context);
      const [stream, subject] = [newStream(), unique('person-')];
      const event = newEvent({ headers: { [subjectHeader]: subject } });
      await one.append(stream, [event]);
      assert.deepEqual(only(await two.readStream(stream).toArray()).payload, event.payload);
      await one.forget(subject);
      assert.ok(isForgotten(only(await two.readStream(stream).toArray()).payload));
      await rejectsWith(
        () => two.append(stream, [newEvent({ headers: { [subjectHeader]: subject } })]),
        'SUBJECT_FORGOTTEN',
      );
    },
  ),

  'the first events about a person, written concurrently on both, are all readable': crossProcess(
    async (context) => {
      const [one, two] = await pair(context);
      const [stream, subject] = [newStream(), unique('person-')];
      const headers = { [subjectHeader]: subject };
      await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 === 0 ? one : two).append(stream, newEvents(1, { headers, payload: index })),
        ),
      );
      for (const store of [one, two]) {
        const payloads = (await store.readStream(stream).toArray()).map(({ payload }) => payload);
        assert.deepEqual(new Set(payloads), new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
      }
    },
  ),

  'closing one connection does not affect the other': crossProcess(async (context) => {
    const { signal } = context;
    const [one, two] = await pair(context);
    await using follower = follow(one.subscribe({ signal }));
    await follower.caughtUp();
    await two.append(newStream(), [newEvent()]);
    await two[Symbol.asyncDispose]();
    await one.append(newStream(), [newEvent()]);
    assert.equal((await follower.count(2)).length, 2);
    await rejectsWith(() => two.head(), 'STORE_CLOSED');
  }),
};

async function pair({ open, second }: CaseContext) {
  const one = await open();
  return [one, await second(one)] as const;
}

function allOf(store: CaseContext['store']) {
  return store.readAll({ filter: {} }).toArray();
}
