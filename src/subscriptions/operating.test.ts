import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { newEvent } from '../testing/conformance/store/fixture.ts';
import { createRig, labelOf, streamOf, until } from '../testing/support/subscriptions/rig.ts';
import type { MemoryTransaction } from '../testing/support/subscriptions/memory/storage.ts';
import { subscriptionAdmin } from './subscription-admin.ts';
import { startSubscription } from './subscription-runner.ts';
import { subscription } from './subscription.ts';

const name = 'sub:banking:operated:v1';

test('pausing from another process waits for a handler that runs longer than the lease', async () => {
  const { db, clock, append } = createRig();
  const effects: string[] = [];
  const finish = Promise.withResolvers<void>();
  const each = subscription<MemoryTransaction>({
    name,
    async handler(event, { transaction }) {
      const { onCommit } = await transaction();
      if (labelOf(event) === 'a1') await finish.promise;
      onCommit(() => void effects.push(labelOf(event)));
    },
  });
  const leaseMs = 3_000;
  await using runner = await startSubscription(db, each, { clock, leaseMs, drainMs: 60_000 });
  await append('a', 1, 2);
  await until(clock, () => runner.status.shards[0]?.inFlight === 2);
  const admin = subscriptionAdmin(db, { clock });
  await admin.pause(name);
  await until(clock, () => runner.status.paused);
  for (let second = 0; second < 12; second += 1) await clock.advance(1_000);
  assert.equal(runner.status.shards.length, 1);
  finish.resolve();
  await until(clock, () => runner.status.shards.length === 0);
  assert.deepEqual(effects, ['a1']);
  await admin.resume(name);
  await until(clock, () => effects.length === 2);
  assert.deepEqual(effects, ['a1', 'a2']);
});

test('a reset is rejected while the subscription runs, and allowed when it is paused or stopped', async () => {
  const { db, clock, append } = createRig();
  const seen: string[] = [];
  const each = subscription({ name, handler: (event) => void seen.push(labelOf(event)) });
  const admin = subscriptionAdmin(db, { clock });
  const runner = await startSubscription(db, each, { clock, worker: 'ada' });
  await append('a', 1);
  await until(clock, () => seen.length === 1);
  await assert.rejects(admin.reset(name), (error) => {
    assert.ok(hasCode(error, 'SUBSCRIPTION_RUNNING'));
    assert.deepEqual(error.details, { name, owners: ['ada'] });
    return true;
  });
  await admin.pause(name);
  await admin.reset(name);
  await admin.resume(name);
  await until(clock, () => seen.length === 2);
  await runner.stop();
  await admin.reset(name);
  await assert.rejects(admin.reset('sub:banking:unknown:v1'), (error) =>
    hasCode(error, 'SUBSCRIPTION_UNKNOWN'),
  );
});

test('the lag counts only matching events, from any process', async () => {
  const { db, clock, append } = createRig();
  const filter = { types: ['account.closed.v1'] };
  const each = subscription({ name, filter, handler: () => undefined });
  {
    await using runner = await startSubscription(db, each, { clock });
    await append('a', 1, 2, 3);
    await clock.advance(5_000);
    assert.deepEqual(await runner.lag().then(({ behind, seconds }) => [behind, seconds]), [0, 0]);
  }
  await db.store.append(streamOf('a'), [newEvent({ type: 'account.closed.v1' })]);
  await append('a', 4);
  await clock.advance(7_000);
  const admin = subscriptionAdmin(db, { clock });
  const { behind, seconds } = await admin.lag(name);
  assert.ok(behind >= 2);
  assert.equal(seconds, 7);
});
