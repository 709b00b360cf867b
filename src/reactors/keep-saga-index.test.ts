import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { until } from '../testing/support/subscriptions/rig.ts';
import { orderSaga, paymentMs, placed } from '../testing/support/reactors/example-order.ts';
import { sagaAdmin } from './saga-admin.ts';
import { memorySagaIndex } from '../testing/support/reactors/memory-saga-index.ts';
import type { SagaIndex } from './saga-index.ts';
import { append, createSagaRig } from '../testing/support/reactors/saga-rig.ts';
import { startSaga } from './saga-runner.ts';

const orderIds = Array.from({ length: 12 }, (_, at) => `o${at}`);

test('an empty index is filled with the running sagas, and their timers fire', async () => {
  const saga = orderSaga({ shards: 3 });
  const { clock, db, receiver, options } = createSagaRig(saga);
  {
    await using _ = await startSaga(db, saga, options);
    for (const orderId of orderIds) await append(db.store, placed({ orderId }));
    await until(clock, () => receiver.effects.length === orderIds.length);
  }
  // A new index: the checkpoint is already after all saga events.
  const index = memorySagaIndex();
  const admin = sagaAdmin({ ...db, sagas: index }, saga, { clock });
  await using _ = await startSaga({ ...db, sagas: index }, saga, options);
  const count = async (status: 'running' | 'compensated'): Promise<number> =>
    (await admin.list({ status })).items.length;
  await until(clock, async () => (await count('running')) === orderIds.length);
  assert.equal(receiver.effects.length, orderIds.length);
  await clock.advance(paymentMs);
  await until(clock, async () => (await count('compensated')) === orderIds.length);
  assert.equal(receiver.calls.length, 2 * orderIds.length);
});

test('a filled index is rebuilt only if it reports missing entries', async () => {
  const saga = orderSaga();
  const { clock, db, options } = createSagaRig(saga);
  const index = memorySagaIndex();
  const messages: string[] = [];
  const ignore = (): void => undefined;
  const info = (_fields: object, message: string): void => void messages.push(message);
  const observer = { log: { debug: ignore, warn: ignore, error: ignore, info } };
  const filled = (): number => messages.filter((each) => each === 'saga index rebuilt').length;
  for (let round = 0; round < 3; round += 1) {
    await using _ = await startSaga({ ...db, sagas: index }, saga, { ...options, observer });
    await until(clock, () => filled() === 1);
    await clock.advance(5_000);
  }
  assert.equal(filled(), 1);
  // A rebuild that started but did not finish.
  await index.upkeep.renew({ saga: saga.category, shards: [0] });
  await using _ = await startSaga({ ...db, sagas: index }, saga, { ...options, observer });
  await until(clock, () => filled() === 2);
});

test('events of the same types in other streams are not sagas', async () => {
  const saga = orderSaga();
  const { clock, db, options } = createSagaRig(saga);
  const foreign = { type: 'fulfilment.started.v1', payload: { orderId: 'x' } };
  await append(db.store, foreign, { stream: 'shop.parcel.v1-core-x' });
  await append(db.store, placed({ orderId: 'o1' }));
  {
    await using _ = await startSaga(db, saga, options);
    await until(clock, async () => (await db.sagas.list({})).length === 1);
  }
  const index = memorySagaIndex();
  await using _ = await startSaga({ ...db, sagas: index }, saga, options);
  const query = { saga: saga.category, shards: [0] };
  await until(clock, async () => (await index.upkeep.incomplete(query)).length === 0);
  assert.deepEqual(
    (await index.list({})).map(({ stream }) => stream),
    ['shop.fulfilment.v1-core-o1'],
  );
});

test('an unavailable index is logged once, and filled when it is available again', async () => {
  const saga = orderSaga();
  const { clock, db, options } = createSagaRig(saga);
  {
    await using _ = await startSaga(db, saga, options);
    await append(db.store, placed({ orderId: 'o1' }));
    await until(clock, async () => (await db.sagas.list({})).length === 1);
  }
  const inner = memorySagaIndex();
  let isDown = false;
  const unlessDown = <T>(work: () => Promise<T>): Promise<T> => {
    const error = new MillraceError('STORE_UNAVAILABLE', 'down', { retryable: true });
    return isDown ? Promise.reject(error) : work();
  };
  const index: SagaIndex = {
    put: (entry) => unlessDown(() => inner.put(entry)),
    upcoming: (query) => unlessDown(() => inner.upcoming(query)),
    list: (query) => unlessDown(() => inner.list(query)),
    upkeep: {
      incomplete: (query) => unlessDown(() => inner.upkeep.incomplete(query)),
      renew: async (query) => {
        const done = await inner.upkeep.renew(query);
        // The index fails during the rebuild.
        isDown = attempts === 0;
        attempts += 1;
        return done;
      },
    },
  };
  let attempts = 0;
  const warned: string[] = [];
  const ignore = (): void => undefined;
  const warn = (_fields: object, message: string): void => void warned.push(message);
  const observer = { log: { debug: ignore, info: ignore, error: ignore, warn } };
  await using _ = await startSaga({ ...db, sagas: index }, saga, { ...options, observer });
  await until(clock, () => attempts === 1);
  await clock.advance(3_000);
  isDown = false;
  await until(clock, async () => (await inner.list({})).length === 1);
  await until(clock, () => attempts === 2);
  assert.equal(warned.filter((each) => each === 'saga index unavailable').length, 1);
});
