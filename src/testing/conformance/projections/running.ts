// Running projections: catching up, following, restarting and failing handlers.

import assert from 'node:assert/strict';
import { eventually } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { toPosition } from '../../../store/position.ts';
import { assertTotal, newCounters } from './projection-fixture.ts';
import type { ProjectionCases } from './projections.ts';
import { startProjection, waitForProjection } from '../../../projections/start-projection.ts';

export const runningCases: ProjectionCases = {
  'the documents contain events from before and after the start': async ({ db }) => {
    const counters = newCounters();
    await db.store.append(counters.stream('a'), counters.add(1, 2));
    await using runner = await startProjection(db, counters.projection());
    await runner.whenCaughtUp();
    const documents = counters.documents(db);
    await assertTotal(documents, 'a', [1, 2]);
    await db.store.append(counters.stream('a'), counters.add(3));
    await db.store.append(counters.stream('b'), counters.add(4));
    await runner.whenCaughtUp();
    await assertTotal(documents, 'a', [1, 2, 3]);
    await assertTotal(documents, 'b', [4]);
    assert.equal((await documents.byIndex('core', 'name', 'n-core-b'))?.id, 'b');
    const { items } = await documents.byRange('core', 'total');
    assert.deepEqual(
      items.map(({ id }) => id),
      ['b', 'a'],
    );
  },

  'folds many events of many streams, each once': async ({ db }) => {
    const counters = newCounters();
    const ids = Array.from({ length: 40 }, (_, index) => `s${index}`);
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(
        ids.map((id) => db.store.append(counters.stream(id), counters.add(1, 2, 3, 4))),
      );
    }
    await using runner = await startProjection(db, counters.projection({ shards: 2 }));
    await runner.whenCaughtUp();
    for (const id of ids) {
      const amounts = Array.from({ length: 5 }, () => [1, 2, 3, 4]).flat();
      await assertTotal(counters.documents(db), id, amounts);
    }
  },

  'resumes after a restart where it stopped': async ({ db }) => {
    const counters = newCounters();
    const seen: number[] = [];
    const counted = () =>
      counters.projection({ onAdded: ({ payload }) => void seen.push(payload.amount) });
    await db.store.append(counters.stream('a'), counters.add(1, 2));
    {
      await using runner = await startProjection(db, counted());
      await runner.whenCaughtUp();
    }
    await db.store.append(counters.stream('a'), counters.add(3));
    await using runner = await startProjection(db, counted());
    await runner.whenCaughtUp();
    await assertTotal(counters.documents(db), 'a', [1, 2, 3]);
    assert.deepEqual(seen, [1, 2, 3]);
  },

  'redelivered events change nothing': async ({ db }) => {
    const counters = newCounters();
    await db.store.append(counters.stream('a'), counters.add(1, 2, 3));
    const counted = counters.projection();
    {
      await using runner = await startProjection(db, counted);
      await runner.whenCaughtUp();
    }
    // Simulates a checkpoint that was lost or restored from a backup.
    const reason = { by: 'test', atMs: 0 };
    await db.subscriptions.checkpoints.reset(counted.name, toPosition(0), reason);
    await db.store.append(counters.stream('a'), counters.add(4));
    await using runner = await startProjection(db, counted);
    await runner.whenCaughtUp();
    await assertTotal(counters.documents(db), 'a', [1, 2, 3, 4]);
  },

  'a removed document disappears, and the next event starts a new one': async ({ db }) => {
    const counters = newCounters();
    const documents = counters.documents(db);
    await using runner = await startProjection(db, counters.projection());
    await db.store.append(counters.stream('a'), counters.add(1));
    await runner.whenCaughtUp();
    await db.store.append(counters.stream('a'), [counters.event('removed')]);
    await runner.whenCaughtUp();
    assert.equal(await documents.get('core', 'a'), undefined);
    await db.store.append(counters.stream('a'), counters.add(7));
    await runner.whenCaughtUp();
    await assertTotal(documents, 'a', [7]);
  },

  'keeps tenants separate': async ({ db }) => {
    const counters = newCounters();
    await db.store.append(counters.stream('a'), counters.add(1));
    const demo = counters.add(5).map((event) => ({ ...event, tenant: 'demo' }));
    await db.store.append(counters.stream('a', 'demo'), demo);
    await using runner = await startProjection(db, counters.projection());
    await runner.whenCaughtUp();
    await assertTotal(counters.documents(db), 'a', [1]);
    await assertTotal(counters.documents(db), 'a', [5], 'demo');
  },

  'a forgotten person does not stop the projection': async ({ db }) => {
    const counters = newCounters();
    const subject = `person-${counters.aggregate}`;
    const personal = counters.event('added', { amount: 5 }, { headers: { dataSubject: subject } });
    await db.store.append(counters.stream('a'), [...counters.add(1), personal, ...counters.add(2)]);
    await db.store.forget(subject);
    await using runner = await startProjection(db, counters.projection());
    await runner.whenCaughtUp();
    await assertTotal(counters.documents(db), 'a', [1, 2]);
    assert.equal((await counters.documents(db).get('core', 'a'))?.revision, 2);
    const letters = { handler: counters.projection().name };
    assert.equal(await db.subscriptions.deadLetters.count(letters), 0);
  },

  'forgetting a person removes their data from existing documents': async ({ db }) => {
    const counters = newCounters();
    const subject = `person-${counters.aggregate}`;
    const personal = counters.event('added', { amount: 5 }, { headers: { dataSubject: subject } });
    const documents = counters.documents(db);
    await using runner = await startProjection(db, counters.projection({ shards: 3 }));
    for (const id of ['a', 'b']) {
      await db.store.append(counters.stream(id), [
        ...counters.add(1),
        personal,
        ...counters.add(2),
      ]);
    }
    await db.store.append(counters.stream('only'), [personal]);
    await db.store.append(counters.stream('other'), counters.add(7));
    await runner.whenCaughtUp();
    await assertTotal(documents, 'a', [1, 5, 2]);
    await assertTotal(documents, 'only', [5]);
    await db.store.forget(subject);
    await runner.waitFor(await db.store.head());
    for (const id of ['a', 'b']) {
      await assertTotal(documents, id, [1, 2]);
      assert.equal((await documents.get('core', id))?.revision, 2);
    }
    await assertTotal(documents, 'other', [7]);
    assert.equal(await documents.get('core', 'only'), undefined);
    assert.equal(await documents.byIndex('core', 'name', 'n-core-only'), undefined);
    await db.store.append(counters.stream('a'), counters.add(4));
    await runner.whenCaughtUp();
    await assertTotal(documents, 'a', [1, 2, 4]);
  },

  'forgetting a person removes their data also from documents of events that the stream hides':
    async ({ db }) => {
      const counters = newCounters();
      const subject = `person-${counters.aggregate}`;
      const documents = counters.documents(db);
      await using runner = await startProjection(db, counters.projection());
      const hide: Readonly<Record<string, (stream: string) => Promise<unknown>>> = {
        counted: (stream) => db.store.setStreamMetadata(stream, { maxCount: 1 }),
        truncated: (stream) => db.store.setStreamMetadata(stream, { truncateBefore: 3 }),
        deleted: (stream) => db.store.deleteStream(stream),
        tombstoned: (stream) => db.store.tombstoneStream(stream),
      };
      for (const [id, hideEvents] of Object.entries(hide)) {
        const headers = { dataSubject: subject };
        const personal = counters.event('added', { amount: 5 }, { headers });
        const stream = counters.stream(id);
        await db.store.append(stream, [...counters.add(1), personal, ...counters.add(2)]);
        await runner.whenCaughtUp();
        await assertTotal(documents, id, [1, 5, 2]);
        await hideEvents(stream);
      }
      await db.store.forget(subject);
      await runner.waitFor(await db.store.head());
      for (const id of Object.keys(hide)) await assertTotal(documents, id, [1, 2]);
    },

  'events that were appended during an erasure are folded into the erased document': async ({
    db,
  }) => {
    const counters = newCounters();
    const subject = `person-${counters.aggregate}`;
    const personal = counters.event('added', { amount: 5 }, { headers: { dataSubject: subject } });
    await using runner = await startProjection(db, counters.projection({ batchSize: 2 }));
    await db.store.append(counters.stream('a'), [personal]);
    const amounts = Array.from({ length: 40 }, (_, at) => at + 1);
    const appended = Promise.all(
      amounts.map((amount) => db.store.append(counters.stream('a'), counters.add(amount))),
    );
    await db.store.forget(subject);
    await appended;
    await runner.waitFor(await db.store.head());
    await assertTotal(counters.documents(db), 'a', amounts);
  },

  'an event that cannot be handled blocks only its document, and later events stay in order':
    async ({ db }) => {
      const counters = newCounters();
      let isBroken = true;
      const counted = counters.projection({
        onAdded({ payload }) {
          if (isBroken && payload.amount === 2) throw new Error('cannot count to two');
        },
      });
      await db.store.append(counters.stream('a'), counters.add(1, 2, 3));
      await db.store.append(counters.stream('b'), counters.add(1));
      await using runner = await startProjection(db, counted, { pollMs: 5, checkpointMs: 10 });
      await runner.whenCaughtUp();
      await assertTotal(counters.documents(db), 'a', [1]);
      await assertTotal(counters.documents(db), 'b', [1]);
      const letters = { handler: counted.name, status: 'pending' } as const;
      assert.equal(await db.subscriptions.deadLetters.count(letters), 1);
      isBroken = false;
      await db.subscriptions.deadLetters.replay(letters, { by: 'test', atMs: Date.now() });
      runner.poll();
      await eventually('the letter is replayed', async () => {
        const found = await counters.documents(db).get('core', 'a');
        return found?.document.events === 3;
      });
      await assertTotal(counters.documents(db), 'a', [1, 2, 3]);
    },

  'reports two streams that write one document, and does not mix them': async ({ db }) => {
    const counters = newCounters();
    const counted = counters.projection({ id: () => 'same' });
    await db.store.append(counters.stream('a'), counters.add(1));
    await using runner = await startProjection(db, counted);
    await runner.whenCaughtUp();
    await db.store.append(counters.stream('b'), counters.add(2));
    await runner.whenCaughtUp();
    await assertTotal(counters.documents(db), 'same', [1]);
    const [letter] = await db.subscriptions.deadLetters.list({ handler: counted.name });
    assert.match(letter?.error ?? '', /belongs to/);
  },

  'waiting for a position makes the writes up to it readable': async ({ db }) => {
    const counters = newCounters();
    await using runner = await startProjection(db, counters.projection());
    for (let round = 1; round <= 5; round += 1) {
      const { position } = await db.store.append(counters.stream('a'), counters.add(1));
      await runner.waitFor(position);
      await assertTotal(
        counters.documents(db),
        'a',
        Array.from({ length: round }, () => 1),
      );
    }
  },

  'a process that does not run the projection can wait for a position': async ({ db }) => {
    const counters = newCounters();
    const { position } = await db.store.append(counters.stream('a'), counters.add(1));
    const counted = counters.projection();
    await using runner = await startProjection(db, counted, { checkpointMs: 10 });
    await waitForProjection(db, counted, position, { timeoutMs: 60_000 });
    await assertTotal(counters.documents(db), 'a', [1]);
    assert.equal(runner.status.shards.length, 1);
  },

  'a wait rejects after its timeout and when it is cancelled': async ({ db }) => {
    const counters = newCounters();
    const counted = counters.projection();
    const { position } = await db.store.append(counters.stream('a'), counters.add(1));
    await assert.rejects(waitForProjection(db, counted, position, { timeoutMs: 20 }), (error) =>
      hasCode(error, 'WAIT_TIMEOUT'),
    );
    const stopping = new AbortController();
    const waiting = waitForProjection(db, counted, position, { signal: stopping.signal });
    stopping.abort();
    await assert.rejects(waiting, (error) => hasCode(error, 'ABORTED'));
  },

  'only one projection fills the documents of a version': async ({ db }) => {
    const counters = newCounters();
    const counted = counters.projection();
    await using runner = await startProjection(db, counted);
    assert.equal(runner.status.name, counted.name);
    const other = { ...counted, name: `${counted.name.slice(0, -3)}-other:v1` };
    await assert.rejects(startProjection(db, other), (error) =>
      hasCode(error, 'PROJECTION_INVALID'),
    );
  },
};
