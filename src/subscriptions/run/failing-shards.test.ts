import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePosition } from '../../store/position.ts';
import { createRig, until } from '../../testing/support/subscriptions/rig.ts';
import { startSubscription } from '../subscription-runner.ts';
import { subscription } from '../subscription.ts';
import { createFailingShards, createShardFailures } from './failing-shards.ts';

const at = (digit: number) => parsePosition(`000000000000000${digit}`);

test('a shard fails after three ends without progress, and recovers with progress', () => {
  const failures = createShardFailures();
  const list = (
    ...now: Parameters<typeof failures.list>[1] extends ReadonlyMap<infer K, infer V>
      ? [K, V][]
      : never
  ) => failures.list('sub', new Map(now)).map(({ failures: count, reason }) => ({ count, reason }));
  failures.ended(0, at(1), new Error('one'));
  failures.ended(0, at(1), new Error('two'));
  assert.deepEqual(list(), []);
  failures.ended(0, at(1), new Error('three'));
  assert.deepEqual(list(), [{ count: 3, reason: 'three' }]);
  assert.deepEqual(list([0, { position: at(1), isLive: false }]), [{ count: 3, reason: 'three' }]);
  assert.deepEqual(list([0, { position: at(1), isLive: true }]), []);
  assert.deepEqual(list([0, { position: at(2), isLive: false }]), []);
  failures.ended(0, at(2), new Error('four'));
  assert.deepEqual(list(), []);
});

test('a subscription whose reads always fail is listed until it stops', async () => {
  const { clock, db, append } = createRig();
  await append('a', 1);
  const failing = createFailingShards();
  const store = {
    ...db.store,
    // oxlint-disable-next-line require-yield
    async *subscribe() {
      throw new Error('no such position');
    },
  } as unknown as typeof db.store;
  const definition = subscription({ name: 'sub:banking:stuck:v1', handler: () => {} });
  const runner = await startSubscription({ ...db, store }, definition, { clock, failing });
  await until(clock, () => failing.list().length === 1);
  const [{ subscription: name, reason } = { subscription: '', reason: '' }] = failing.list();
  assert.deepEqual([name, reason], ['sub:banking:stuck:v1', 'no such position']);
  assert.equal(runner.status.failing.length, 1);
  await runner.stop();
  assert.deepEqual(failing.list(), []);
});
