// The database of the handler is unavailable, but the store is not: the events stay in memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { createRig, labelOf, until } from '../testing/support/subscriptions/rig.ts';
import { startSubscription } from './subscription-runner.ts';
import { subscription } from './subscription.ts';

const name = 'sub:banking:outage:v1';
const unavailable = (): MillraceError =>
  new MillraceError('STORE_UNAVAILABLE', 'connection refused');

test('during an outage no event moves to the database, the reader waits, and the lag grows', async () => {
  const { db, clock, append } = createRig();
  const ids = Array.from({ length: 30 }, (_, index) => `s${index}-`);
  for (const number of [1, 2, 3]) for (const id of ids) await append(id, number);
  const seen: string[] = [];
  let isDown = true;
  let attempts = 0;
  const each = subscription({
    name,
    inFlightMax: 20,
    lanes: 4,
    retry: { initialMs: 100, factor: 1, capMs: 100, jitterMs: 0, attemptsMax: 2 },
    handler(event) {
      attempts += 1;
      if (isDown) throw unavailable();
      seen.push(labelOf(event));
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  const startedMs = clock.now();
  await until(clock, () => clock.now() - startedMs > 5_000);
  assert.ok(attempts > 20);
  // A page may exceed inFlightMax; all its events stay in memory.
  const [shard] = runner.status.shards;
  assert.deepEqual([shard?.parkedStreams, shard?.position], [0, '0000000000000000']);
  assert.equal(await db.subscriptions.waiting.count(name), 0);
  assert.ok((await runner.lag()).seconds >= 5);
  isDown = false;
  await until(clock, () => seen.length === 90);
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
  for (const id of ids) {
    const own = seen.filter((label) => label.startsWith(id));
    assert.deepEqual(own, [`${id}1`, `${id}2`, `${id}3`]);
  }
});

test('a batch is not split during an outage', async () => {
  const { db, clock, append } = createRig();
  for (const id of ['a', 'b', 'c', 'd']) await append(id, 1, 2);
  const batches: string[][] = [];
  let isDown = true;
  const each = subscription({
    name,
    lanes: 1,
    batchSize: 8,
    retry: { initialMs: 100, factor: 1, capMs: 100, jitterMs: 0, attemptsMax: 2 },
    batchHandler(events) {
      if (isDown) throw unavailable();
      batches.push(events.map(labelOf));
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  const startedMs = clock.now();
  await until(clock, () => clock.now() - startedMs > 1_000);
  isDown = false;
  await until(clock, () => batches.flat().length === 8);
  assert.ok(batches.length < 8, JSON.stringify(batches));
  for (const id of ['a', 'b', 'c', 'd']) {
    assert.deepEqual(
      batches.flat().filter((label) => label.startsWith(id)),
      [`${id}1`, `${id}2`],
    );
  }
  assert.equal(runner.status.shards[0]?.parkedStreams, 0);
});

test('a waiting event whose stored id is damaged is handled all the same', async () => {
  const { db, clock, append } = createRig();
  const { waiting } = db.subscriptions;
  const damaged = {
    ...db.subscriptions,
    waiting: {
      ...waiting,
      next: async (...of: Parameters<typeof waiting.next>) =>
        (await waiting.next(...of)).map((row) => ({ ...row, eventId: '', failures: 0 })),
    },
  };
  const seen: string[] = [];
  let isFailing = true;
  const each = subscription({
    name,
    inFlightMax: 1,
    retry: { initialMs: 10_000, factor: 1, capMs: 10_000, jitterMs: 0, attemptsMax: 9 },
    handler(event) {
      if (isFailing) throw new Error('not yet');
      seen.push(labelOf(event));
    },
  });
  await append('a', 1, 2);
  const runner = await startSubscription({ ...db, subscriptions: damaged }, each, { clock });
  await until(clock, async () => (await waiting.count(name)) > 0);
  isFailing = false;
  await until(clock, () => seen.length === 2);
  assert.deepEqual(seen, ['a1', 'a2']);
  await runner.stop();
});
