// Events and their documents are written in one transaction.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { inlineProjections } from '../../../projections/inline-projections.ts';
import {
  assertTotal,
  newCounters,
  type Counters,
  type ProjectionHandle,
} from './projection-fixture.ts';
import type { ProjectionCases } from './projections.ts';
import { startProjection } from '../../../projections/start-projection.ts';

const inline = (db: ProjectionHandle, counters: Counters) =>
  inlineProjections(db, [counters.projection()]);

export const inlineCases: ProjectionCases = {
  'the document exists as soon as the append is acknowledged': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
    const documents = counters.documents(db);
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

  'a conflict writes nothing': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
    await projecting.append(counters.stream('a'), counters.add(1));
    for (const expected of ['none', 7] as const) {
      await assert.rejects(
        projecting.append(counters.stream('a'), counters.add(5), { expected }),
        (error) => hasCode(error, 'VERSION_CONFLICT'),
      );
    }
    await assertTotal(counters.documents(db), 'a', [1]);
    assert.equal((await db.store.readStream(counters.stream('a')).toArray()).length, 1);
  },

  'a duplicate append returns the first result and changes nothing': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
    const events = counters.add(1, 2);
    await projecting.append(counters.stream('a'), events);
    for (const expected of ['any', 'none'] as const) {
      const again = await projecting.append(counters.stream('a'), events, { expected });
      assert.equal(again.isDuplicate, true);
      assert.equal(again.revision, 1);
    }
    await assertTotal(counters.documents(db), 'a', [1, 2]);
  },

  'a handler that throws fails the append': async ({ db }) => {
    const counters = newCounters();
    const failing = counters.projection({
      onAdded({ payload }) {
        if (payload.amount === 13) throw new Error('not thirteen');
      },
    });
    const projecting = await inlineProjections(db, [failing]);
    await projecting.append(counters.stream('a'), counters.add(1));
    await assert.rejects(
      projecting.append(counters.stream('a'), counters.add(2, 13)),
      /not thirteen/,
    );
    await assertTotal(counters.documents(db), 'a', [1]);
    assert.equal((await db.store.streamInfo(counters.stream('a')))?.revision, 0);
  },

  'an append to several streams writes all documents or nothing': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
    const [a, b] = [counters.stream('a'), counters.stream('b')];
    await projecting.appendMany([
      { stream: a, events: counters.add(1) },
      { stream: b, events: counters.add(2) },
      { stream: a, events: counters.add(3) },
    ]);
    await assertTotal(counters.documents(db), 'a', [1, 3]);
    await assertTotal(counters.documents(db), 'b', [2]);
    await assert.rejects(
      projecting.appendMany([
        { stream: a, events: counters.add(1) },
        { stream: b, events: counters.add(2), expected: 'none' },
      ]),
      (error) => hasCode(error, 'VERSION_CONFLICT'),
    );
    await assertTotal(counters.documents(db), 'a', [1, 3]);
    await assertTotal(counters.documents(db), 'b', [2]);
  },

  'concurrent appends to one stream are all in the document': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
    const amounts = Array.from({ length: 12 }, (_, index) => index + 1);
    await Promise.all(
      amounts.map((amount) => projecting.append(counters.stream('a'), counters.add(amount))),
    );
    await assertTotal(counters.documents(db), 'a', amounts);
  },

  'folds events appended without the projection together with the next event': async ({ db }) => {
    const counters = newCounters();
    await db.store.append(counters.stream('a'), counters.add(1, 2));
    const projecting = await inline(db, counters);
    await projecting.append(counters.stream('a'), counters.add(3));
    await assertTotal(counters.documents(db), 'a', [1, 2, 3]);
    await db.store.append(counters.stream('a'), counters.add(4));
    await db.store.append(counters.stream('a'), [counters.event('ignored')]);
    await projecting.append(counters.stream('a'), counters.add(5), { expected: 4 });
    await assertTotal(counters.documents(db), 'a', [1, 2, 3, 4, 5]);
  },

  'the same projection running in addition applies nothing twice': async ({ db }) => {
    const counters = newCounters();
    await db.store.append(counters.stream('old'), counters.add(7));
    const projecting = await inline(db, counters);
    await using runner = await startProjection(db, counters.projection());
    for (let round = 0; round < 10; round += 1) {
      await projecting.append(counters.stream('a'), counters.add(1));
    }
    await runner.whenCaughtUp();
    await assertTotal(
      counters.documents(db),
      'a',
      Array.from({ length: 10 }, () => 1),
    );
    await assertTotal(counters.documents(db), 'old', [7]);
  },

  'a removed document can be restored': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
    await projecting.append(counters.stream('a'), [...counters.add(1), counters.event('removed')]);
    assert.equal(await counters.documents(db).get('core', 'a'), undefined);
    await projecting.append(counters.stream('a'), [counters.event('removed'), ...counters.add(2)]);
    await assertTotal(counters.documents(db), 'a', [2]);
  },

  'a deleted stream continues its revisions': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
    await projecting.append(counters.stream('a'), counters.add(1, 2));
    await projecting.deleteStream(counters.stream('a'));
    const { revision } = await projecting.append(counters.stream('a'), counters.add(3), {
      expected: 'none',
    });
    assert.equal(revision, 2);
    assert.equal((await counters.documents(db).get('core', 'a'))?.revision, 2);
  },

  'rejects invalid input': async ({ db }) => {
    const counters = newCounters();
    const projecting = await inline(db, counters);
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
    assert.equal(await db.store.streamInfo(stream), undefined);
  },
};
