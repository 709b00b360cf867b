// Appends inside a transaction of the caller take effect when the caller commits.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import {
  assertDense,
  conflict,
  follow,
  idsOf,
  needs,
  newEvent,
  newEvents,
  newStream,
  storedIds,
  type CaseBody,
  type StoreCases,
} from './fixture.ts';

const callerTransaction = (run: CaseBody) => needs('callerTransaction', run);

export const callerTransactionCases: StoreCases = {
  'an engine without caller transactions rejects a transaction': async ({ open }) => {
    const store = await open();
    if (store.capabilities.callerTransaction) return;
    const stream = newStream();
    const error = await rejectsWith(
      () => store.append(stream, [newEvent()], { transaction: {} }),
      'NOT_SUPPORTED',
    );
    assert.deepEqual(error.details, { capability: 'callerTransaction' });
    assert.equal(await store.streamInfo(stream), undefined);
  },

  'a commit stores the appended events': callerTransaction(async ({ open, inTransaction }) => {
    const store = await open();
    const stream = newStream();
    const events = newEvents(3);
    const result = await inTransaction(store, async (transaction) => {
      await store.append(stream, events.slice(0, 1), { expected: 'none', transaction });
      return store.append(stream, events.slice(1), { expected: 0, transaction });
    });
    assert.equal(result.revision, 2);
    const recorded = await store.readStream(stream).toArray();
    assert.deepEqual(idsOf(recorded), idsOf(events));
    assert.equal(recorded.at(-1)?.position, result.position);
  }),

  'a rollback stores nothing': callerTransaction(async ({ open, inTransaction }) => {
    const store = await open();
    const stream = newStream();
    await assert.rejects(
      inTransaction(store, async (transaction) => {
        await store.append(stream, newEvents(3), { expected: 'none', transaction });
        throw new Error('changed my mind');
      }),
      /changed my mind/,
    );
    assert.equal(await store.streamInfo(stream), undefined);
    assert.deepEqual(await store.readAll({ filter: {} }).toArray(), []);
    assert.equal((await store.append(stream, [newEvent()], { expected: 'none' })).revision, 0);
  }),

  'reports a conflict inside the transaction': callerTransaction(
    async ({ open, inTransaction }) => {
      const store = await open();
      const stream = newStream();
      await store.append(stream, newEvents(2));
      await conflict(
        () =>
          inTransaction(store, (transaction) =>
            store.append(stream, [newEvent()], { expected: 'none', transaction }),
          ),
        { expected: 'none', actual: 1 },
      );
      assert.equal((await storedIds(store, stream)).length, 2);
    },
  ),

  'an append to several streams commits or rolls back as a whole': callerTransaction(
    async ({ open, inTransaction, capabilities }) => {
      if (!capabilities.multiStreamAppend) return;
      const store = await open();
      const streams = [newStream(), newStream()];
      const appends = streams.map((stream) => ({ stream, events: newEvents(2) }));
      await assert.rejects(
        inTransaction(store, async (transaction) => {
          await store.appendMany(appends, { transaction });
          throw new Error('changed my mind');
        }),
        /changed my mind/,
      );
      for (const stream of streams) assert.equal(await store.streamInfo(stream), undefined);
      await inTransaction(store, (transaction) => store.appendMany(appends, { transaction }));
      for (const stream of streams) assert.equal((await storedIds(store, stream)).length, 2);
    },
  ),

  'a subscription gets the events after the commit and misses no others': callerTransaction(
    async ({ open, inTransaction, signal }) => {
      const store = await open();
      await using follower = follow(store.subscribe({ signal, pageSize: 3 }));
      await follower.caughtUp();
      for (let round = 0; round < 5; round += 1) {
        const commit = inTransaction(store, (transaction) =>
          store.append(newStream(), newEvents(2), { transaction }),
        );
        const around = [1, 2, 3].map(() => store.append(newStream(), [newEvent()]));
        await Promise.all([commit, ...around]);
      }
      const events = await follower.count(25);
      assert.deepEqual(idsOf(events), idsOf(await store.readAll({ filter: {} }).toArray()));
      assertDense(events);
    },
  ),

  'rejects invalid input before it reaches the transaction': callerTransaction(
    async ({ open, inTransaction }) => {
      const store = await open();
      const stream = newStream();
      await inTransaction(store, async (transaction) => {
        const bad = [newEvent({ payload: { value: 1n } })];
        await rejectsWith(() => store.append(stream, bad, { transaction }), 'PAYLOAD_NOT_JSON');
        await store.append(stream, [newEvent()], { transaction });
      });
      assert.equal((await storedIds(store, stream)).length, 1);
    },
  ),
};
