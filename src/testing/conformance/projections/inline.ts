// Events and their documents are written in one transaction.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { inlineProjections } from '../../../projections/inline-projections.ts';
import { assertTotal, newCounters, type Counters, type HostStore } from './projection-fixture.ts';
import type { ProjectionCases } from './projections.ts';
import { startProjection } from '../../../projections/start-projection.ts';

const inline = (store: HostStore, counters: Counters) =>
  inlineProjections(store, [counters.projection()]);

export const inlineCases: ProjectionCases = {
  'the document exists as soon as the append is acknowledged': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    const documents = counters.documents(store);
    const first = await projecting.append(counters.stream('a'), counters.add(1, 2), {
      expected: 'none',
    });
    assert.equal(first.revision, 1);
    await assertTotal(documents, 'a', [1, 2]);
    await projecting.append(counters.stream('a'), counters.add(3), { expected: 1 });
    await assertTotal(documents, 'a', [1, 2, 3]);
    await projecting.append(counters.stream('a'), counters.add(4));
    await assertTotal(documents, 'a', [1, 2, 3, 4]);
    assert.equal((await documents.byIndex('core', 'name', 'n-core-a'))?.revision, 3);
  },

  'a conflict writes nothing': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    await projecting.append(counters.stream('a'), counters.add(1));
    for (const expected of ['none', 7] as const) {
      await assert.rejects(
        projecting.append(counters.stream('a'), counters.add(5), { expected }),
        (error) => hasCode(error, 'VERSION_CONFLICT'),
      );
    }
    await assertTotal(counters.documents(store), 'a', [1]);
    assert.equal((await store.readStream(counters.stream('a')).toArray()).length, 1);
  },

  'a duplicate append returns the first result and changes nothing': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    const events = counters.add(1, 2);
    await projecting.append(counters.stream('a'), events);
    for (const expected of ['any', 'none'] as const) {
      const again = await projecting.append(counters.stream('a'), events, { expected });
      assert.equal(again.isDuplicate, true);
      assert.equal(again.revision, 1);
    }
    await assertTotal(counters.documents(store), 'a', [1, 2]);
  },

  'a handler that throws fails the append': async ({ store }) => {
    const counters = newCounters();
    const failing = counters.projection({
      onAdded({ payload }) {
        if (payload.amount === 13) throw new Error('not thirteen');
      },
    });
    const projecting = await inlineProjections(store, [failing]);
    await projecting.append(counters.stream('a'), counters.add(1));
    await assert.rejects(
      projecting.append(counters.stream('a'), counters.add(2, 13)),
      /not thirteen/,
    );
    await assertTotal(counters.documents(store), 'a', [1]);
    assert.equal((await store.streamInfo(counters.stream('a')))?.revision, 0);
  },

  'an append to several streams writes all documents or nothing': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    const [a, b] = [counters.stream('a'), counters.stream('b')];
    await projecting.appendMany([
      { stream: a, events: counters.add(1) },
      { stream: b, events: counters.add(2) },
      { stream: a, events: counters.add(3) },
    ]);
    await assertTotal(counters.documents(store), 'a', [1, 3]);
    await assertTotal(counters.documents(store), 'b', [2]);
    await assert.rejects(
      projecting.appendMany([
        { stream: a, events: counters.add(1) },
        { stream: b, events: counters.add(2), expected: 'none' },
      ]),
      (error) => hasCode(error, 'VERSION_CONFLICT'),
    );
    await assertTotal(counters.documents(store), 'a', [1, 3]);
    await assertTotal(counters.documents(store), 'b', [2]);
  },

  'concurrent appends to one stream are all in the document': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    const amounts = Array.from({ length: 12 }, (_, index) => index + 1);
    await Promise.all(
      amounts.map((amount) => projecting.append(counters.stream('a'), counters.add(amount))),
    );
    await assertTotal(counters.documents(store), 'a', amounts);
  },

  'folds events appended without the projection together with the next event': async ({
    store,
  }) => {
    const counters = newCounters();
    await store.append(counters.stream('a'), counters.add(1, 2));
    const projecting = await inline(store, counters);
    await projecting.append(counters.stream('a'), counters.add(3));
    await assertTotal(counters.documents(store), 'a', [1, 2, 3]);
    await store.append(counters.stream('a'), counters.add(4));
    await store.append(counters.stream('a'), [counters.event('ignored')]);
    await projecting.append(counters.stream('a'), counters.add(5), { expected: 4 });
    await assertTotal(counters.documents(store), 'a', [1, 2, 3, 4, 5]);
  },

  'the same projection running in addition applies nothing twice': async ({ store }) => {
    const counters = newCounters();
    await store.append(counters.stream('old'), counters.add(7));
    const projecting = await inline(store, counters);
    await using runner = await startProjection(store, counters.projection());
    for (let round = 0; round < 10; round += 1) {
      await projecting.append(counters.stream('a'), counters.add(1));
    }
    await runner.whenCaughtUp();
    await assertTotal(
      counters.documents(store),
      'a',
      Array.from({ length: 10 }, () => 1),
    );
    await assertTotal(counters.documents(store), 'old', [7]);
  },

  'a removed document can be restored': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    await projecting.append(counters.stream('a'), [...counters.add(1), counters.event('removed')]);
    assert.equal(await counters.documents(store).get('core', 'a'), undefined);
    await projecting.append(counters.stream('a'), [counters.event('removed'), ...counters.add(2)]);
    await assertTotal(counters.documents(store), 'a', [2]);
  },

  'a deleted stream continues its revisions': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    await projecting.append(counters.stream('a'), counters.add(1, 2));
    await projecting.deleteStream(counters.stream('a'));
    const { revision } = await projecting.append(counters.stream('a'), counters.add(3), {
      expected: 'none',
    });
    assert.equal(revision, 2);
    assert.equal((await counters.documents(store).get('core', 'a'))?.revision, 2);
  },

  'rejects invalid input': async ({ store }) => {
    const counters = newCounters();
    const projecting = await inline(store, counters);
    const stream = counters.stream('a');
    await rejectsWith(
      () => projecting.append(stream, [counters.event('added', { n: 1n })]),
      'PAYLOAD_NOT_JSON',
    );
    await rejectsWith(() => projecting.append(stream, []), 'APPEND_INVALID');
    const transaction = {};
    await rejectsWith(
      () => projecting.append(stream, counters.add(1), { transaction }),
      'NOT_SUPPORTED',
    );
    assert.equal(await store.streamInfo(stream), undefined);
  },
};
