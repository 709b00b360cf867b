import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { until } from '../testing/support/subscriptions/rig.ts';
import {
  expiryMs,
  orderSaga,
  paid,
  paymentMs,
  placed,
  quickRetry,
  withdrawn,
} from '../testing/support/reactors/example-order.ts';
import { append, createSagaRig } from '../testing/support/reactors/saga-rig.ts';
import { startSaga } from './saga-runner.ts';

const o1 = { orderId: 'o1' };

test('runs its steps to completion, each command once', async () => {
  const saga = orderSaga();
  const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  const startId = await append(db.store, placed(o1));
  await untilStatus('o1', 'running');
  await append(db.store, paid(o1));
  await untilStatus('o1', 'completed');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'card.charge o1', 'parcel.ship o1']);
  assert.equal(receiver.calls.length, 3);
  const { data, steps, timers } = await admin.get(at('o1'));
  assert.deepEqual(data, { orderId: 'o1', isPaid: true });
  assert.deepEqual(
    steps.map(({ step, status }) => `${step} ${status}`),
    ['reserve done', 'charge done', 'ship done'],
  );
  assert.deepEqual(timers, []);
  // One correlation id for the whole flow; each command names the event that caused it.
  const [start] = await db.store.readStream('shop.order.v1-core-o1').toArray();
  assert.equal(start?.eventId, startId);
  const own = await db.store.readStream('shop.fulfilment.v1-core-o1').toArray();
  for (const { correlationId, causationId } of receiver.calls) {
    assert.equal(correlationId, start.correlationId);
    assert.ok(own.some(({ eventId }) => eventId === causationId));
  }
  assert.ok(own.every(({ correlationId }) => correlationId === start.correlationId));
});

test('a rejected step compensates the completed steps, last first', async () => {
  const saga = orderSaga();
  const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  receiver.answer('parcel.ship', 'reject');
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await untilStatus('o1', 'compensated');
  assert.deepEqual(receiver.effects, [
    'stock.reserve o1',
    'card.charge o1',
    'card.refund o1',
    'stock.release o1',
  ]);
  assert.equal((await admin.get(at('o1'))).reason, 'ship: said-no');
});

test('a timer fires once, at its time, and its failure compensates the steps', async () => {
  const saga = orderSaga();
  const { clock, db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1));
  await untilStatus('o1', 'running');
  await clock.advance(paymentMs - 1_000);
  assert.equal((await admin.get(at('o1'))).status, 'running');
  await clock.advance(1_000);
  await untilStatus('o1', 'compensated');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'stock.release o1']);
  const own = await db.store.readStream('shop.fulfilment.v1-core-o1').toArray();
  assert.equal(own.filter(({ type }) => type === 'fulfilment.timer-fired.v1').length, 1);
});

test('a timer survives the process that set it', async () => {
  const saga = orderSaga();
  const { clock, db, receiver, options, untilStatus } = createSagaRig(saga);
  {
    await using started = await startSaga(db, saga, options);
    assert.equal(started.state, 'started');
    await append(db.store, placed(o1));
    await untilStatus('o1', 'running');
    await until(clock, () => receiver.effects.length === 1);
  }
  // No process is running when the timer is due.
  await clock.advance(paymentMs * 2);
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await untilStatus('o1', 'compensated');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'stock.release o1']);
});

test('an expired saga is compensated together with its pending step', async () => {
  const saga = orderSaga({
    retry: { ...quickRetry, initialMs: 5_000, capMs: 5_000, attemptsMax: 100 },
  });
  const { clock, db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  receiver.answer('card.charge', 'fail');
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await until(clock, () => receiver.calls.length === 2);
  await clock.advance(expiryMs);
  receiver.answer('card.charge', 'accept');
  await clock.advance(5_000);
  await untilStatus('o1', 'compensated');
  assert.equal((await admin.get(at('o1'))).reason, 'expired');
  // The charge may have taken effect: the saga waits for its outcome and then compensates it.
  assert.deepEqual(receiver.effects, [
    'stock.reserve o1',
    'card.charge o1',
    'card.refund o1',
    'stock.release o1',
  ]);
});

test('after a lost result the command is sent again and takes effect once', async () => {
  const saga = orderSaga();
  const { db, receiver, options, untilStatus } = createSagaRig(saga);
  receiver.answer('card.charge', 'lose-answer', 'accept');
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await untilStatus('o1', 'completed');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'card.charge o1', 'parcel.ship o1']);
  assert.equal(receiver.calls.length, 4);
});

test('a step without an outcome parks the saga, or is compensated with the others', async () => {
  for (const onUnanswered of ['park', 'compensate'] as const) {
    const saga = orderSaga({ onUnanswered });
    const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
    receiver.answer('card.charge', 'lose-answer', 'fail');
    await using started = await startSaga(db, saga, options);
    assert.equal(started.state, 'started');
    await append(db.store, placed(o1));
    await append(db.store, paid(o1));
    await untilStatus('o1', onUnanswered === 'park' ? 'parked' : 'compensated');
    const { parked } = await admin.get(at('o1'));
    if (onUnanswered === 'park') {
      assert.deepEqual(parked, {
        at: 'step',
        n: 1,
        reason: 'unanswered',
        message: 'card.charge is unavailable',
        from: 'running',
      });
      assert.equal(receiver.effects.length, 2);
    } else {
      assert.deepEqual(receiver.effects.slice(2), ['card.refund o1', 'stock.release o1']);
    }
  }
});

test('skipping a step without an outcome compensates the others', async () => {
  const saga = orderSaga();
  const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  receiver.answer('card.charge', 'fail');
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await untilStatus('o1', 'parked');
  await admin.skip(at('o1'), { by: 'ada', note: 'the terminal is broken' });
  await untilStatus('o1', 'compensated');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'stock.release o1']);
});

test('a failed compensation parks the saga; resumed, it continues there', async () => {
  const saga = orderSaga();
  const { clock, db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  receiver.answer('parcel.ship', 'reject');
  receiver.answer('card.refund', 'reject');
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await untilStatus('o1', 'parked');
  const { parked, steps } = await admin.get(at('o1'));
  assert.equal(parked?.at, 'compensation');
  assert.equal(parked.reason, 'said-no');
  assert.deepEqual(
    steps.map(({ status }) => status),
    ['done', 'compensating', 'failed'],
  );
  // Still rejected: parked again, and no later compensation was sent.
  const { revision } = await admin.get(at('o1'));
  await admin.resume(at('o1'), { by: 'ada' });
  await until(clock, async () => (await admin.get(at('o1'))).revision === revision + 2);
  assert.equal((await admin.get(at('o1'))).status, 'parked');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'card.charge o1']);

  receiver.answer('card.refund', 'accept');
  await admin.resume(at('o1'), { by: 'ada' });
  await untilStatus('o1', 'compensated');
  assert.deepEqual(receiver.effects.slice(2), ['card.refund o1', 'stock.release o1']);
  await assert.rejects(admin.resume(at('o1'), { by: 'ada' }), (error) =>
    hasCode(error, 'SAGA_NOT_PARKED'),
  );
});

test('a compensation done manually is skipped, and the remaining ones continue', async () => {
  const saga = orderSaga();
  const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  receiver.answer('parcel.ship', 'reject');
  receiver.answer('card.refund', 'reject');
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await untilStatus('o1', 'parked');
  await admin.skip(at('o1'), { by: 'ada', note: 'refunded in the shop' });
  await untilStatus('o1', 'compensated');
  assert.deepEqual(receiver.effects.slice(2), ['stock.release o1']);
  const own = await db.store.readStream('shop.fulfilment.v1-core-o1').toArray();
  const resumed = own.find(({ type }) => type === 'fulfilment.resumed.v1');
  assert.deepEqual(resumed?.payload, { how: 'skip', by: 'ada', note: 'refunded in the shop' });
});

test('an event before the start is queued until the start', async () => {
  const saga = orderSaga();
  const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, paid(o1));
  await untilStatus('o1', 'waiting');
  assert.equal((await admin.get(at('o1'))).queuedEvents, 1);
  await append(db.store, placed(o1));
  await untilStatus('o1', 'completed');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'card.charge o1', 'parcel.ship o1']);
});

test('an ignored early event is not stored', async () => {
  const saga = orderSaga({ onEarly: 'ignore' });
  const { clock, db, admin, at, options, untilStatus } = createSagaRig(saga);
  await using runner = await startSaga(db, saga, options);
  await append(db.store, paid(o1));
  await until(clock, () => runner.subscription.status.shards[0]?.isLive === true);
  await runner.subscription.whenCaughtUp();
  await assert.rejects(admin.get(at('o1')), (error) => hasCode(error, 'SAGA_UNKNOWN'));
  await append(db.store, placed(o1));
  await untilStatus('o1', 'running');
});

test('a duplicate, a second start event and an event after completion change nothing', async () => {
  const saga = orderSaga();
  const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  await using runner = await startSaga(db, saga, options);
  await append(db.store, placed(o1), { eventId: 'p-1' });
  await append(db.store, placed(o1), { eventId: 'p-1', stream: 'shop.order.v1-core-copy' });
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await untilStatus('o1', 'completed');
  const { revision } = await admin.get(at('o1'));
  await append(db.store, withdrawn(o1));
  await append(db.store, paid(o1));
  await runner.subscription.whenCaughtUp();
  assert.equal((await admin.get(at('o1'))).revision, revision);
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'card.charge o1', 'parcel.ship o1']);
});

test('a reset of its subscription repeats no effect', async () => {
  const saga = orderSaga();
  const { clock, db, receiver, options, untilStatus } = createSagaRig(saga);
  await using runner = await startSaga(db, saga, options);
  await append(db.store, placed(o1));
  await append(db.store, paid(o1));
  await untilStatus('o1', 'completed');
  const { length } = receiver.calls;
  await runner.subscription.reset();
  const { position } = (await db.store.readAll().toArray()).at(-1) ?? {};
  await until(clock, () => runner.subscription.status.shards[0]?.position === position);
  assert.equal(receiver.calls.length, length);
});

test('events for a parked saga are queued in order until it is resumed', async () => {
  const saga = orderSaga();
  const { db, receiver, admin, at, options, untilStatus } = createSagaRig(saga);
  receiver.answer('stock.reserve', 'fail');
  await using runner = await startSaga(db, saga, options);
  await append(db.store, placed(o1));
  await untilStatus('o1', 'parked');
  await append(db.store, paid(o1));
  await runner.subscription.whenCaughtUp();
  assert.equal((await admin.get(at('o1'))).queuedEvents, 1);
  receiver.answer('stock.reserve', 'accept');
  await admin.resume(at('o1'), { by: 'ada' });
  await untilStatus('o1', 'completed');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'card.charge o1', 'parcel.ship o1']);
});

test('the admin lists sagas by status, page by page', async () => {
  const saga = orderSaga();
  const { clock, db, admin, options } = createSagaRig(saga);
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  for (let each = 0; each < 7; each += 1) await append(db.store, placed({ orderId: `n${each}` }));
  await append(db.store, paid({ orderId: 'n3' }));
  await until(clock, async () => (await admin.list({ status: 'completed' })).items.length === 1);
  await until(clock, async () => (await admin.list({ status: 'running' })).items.length === 6);
  const keys: string[] = [];
  let after: string | undefined;
  do {
    const page = await admin.list({
      status: 'running',
      limit: 2,
      after,
    });
    keys.push(...page.items.map(({ key }) => key));
    after = page.cursor;
  } while (after !== undefined);
  assert.deepEqual(keys, ['n0', 'n1', 'n2', 'n4', 'n5', 'n6']);
});

test('forgetting a person also erases the data in the saga', async () => {
  const saga = orderSaga();
  const { db, admin, at, options, untilStatus, clock, receiver } = createSagaRig(saga);
  await using started = await startSaga(db, saga, options);
  assert.equal(started.state, 'started');
  await append(db.store, placed(o1), { subject: 'ada' });
  await untilStatus('o1', 'running');
  await until(clock, () => receiver.effects.length === 1);
  await db.store.forget('ada');
  const { data, steps, status } = await admin.get(at('o1'));
  assert.equal(data, undefined);
  assert.equal(status, 'running');
  assert.equal(steps[0]?.command, undefined);
  // The data for the compensation was erased, so an operator must decide.
  await append(db.store, withdrawn(o1));
  await untilStatus('o1', 'parked');
  assert.equal((await admin.get(at('o1'))).parked?.reason, 'forgotten');
});
