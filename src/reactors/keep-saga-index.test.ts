import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { until } from '../subscriptions/rig.test.ts';
import { orderSaga, paymentMs, placed } from '../testing/support/reactors/example-order.ts';
import { sagaAdmin } from './saga-admin.ts';
import { memorySagaIndex, type SagaIndex } from './saga-index.ts';
import { append, createSagaRig } from '../testing/support/reactors/saga-rig.ts';
import { startSaga } from './start-saga.ts';

const orderIds = Array.from({ length: 12 }, (_, at) => `o${at}`);

test('an index that knows nothing of the sagas under way is filled, and their timers fire', async () => {
  const saga = orderSaga({ shards: 3 });
  const { clock, store, receiver, options } = createSagaRig(saga);
  {
    await using _ = await startSaga(store, saga, options);
    for (const orderId of orderIds) await append(store, placed({ orderId }));
    await until(clock, () => receiver.effects.length === orderIds.length);
  }
  // Another place from now on: the checkpoint has passed all of their events.
  const index = memorySagaIndex();
  const admin = sagaAdmin(store, saga, { index, clock });
  await using _ = await startSaga(store, saga, { ...options, index });
  const count = async (status: 'running' | 'compensated'): Promise<number> =>
    (await admin.list({ status })).sagas.length;
  await until(clock, async () => (await count('running')) === orderIds.length);
  assert.equal(receiver.effects.length, orderIds.length);
  await clock.advance(paymentMs);
  await until(clock, async () => (await count('compensated')) === orderIds.length);
  assert.equal(receiver.calls.length, 2 * orderIds.length);
});

test('an index that was filled is not filled again, unless it says so', async () => {
  const saga = orderSaga();
  const { clock, store, options } = createSagaRig(saga);
  const index = memorySagaIndex();
  const said: string[] = [];
  const ignore = (): void => undefined;
  const info = (_fields: object, message: string): void => void said.push(message);
  const observer = { log: { debug: ignore, warn: ignore, error: ignore, info } };
  const filled = (): number => said.filter((each) => each === 'index of the saga is filled').length;
  for (let round = 0; round < 3; round += 1) {
    await using _ = await startSaga(store, saga, { ...options, index, observer });
    await until(clock, () => filled() === 1);
    await clock.advance(5_000);
  }
  assert.equal(filled(), 1);
  // Whoever began it and never came to the end.
  await index.upkeep.renew({ saga: saga.category, shards: [0] });
  await using _ = await startSaga(store, saga, { ...options, index, observer });
  await until(clock, () => filled() === 2);
});

test('events of the same names in other streams are not taken for sagas', async () => {
  const saga = orderSaga();
  const { clock, store, options } = createSagaRig(saga);
  const foreign = { type: 'fulfilment.started.v1', payload: { orderId: 'x' } };
  await append(store, foreign, { stream: 'shop.parcel.v1-core-x' });
  await append(store, placed({ orderId: 'o1' }));
  {
    await using _ = await startSaga(store, saga, options);
    await until(clock, async () => (await store.sagas.list({})).length === 1);
  }
  const index = memorySagaIndex();
  await using _ = await startSaga(store, saga, { ...options, index });
  const query = { saga: saga.category, shards: [0] };
  await until(clock, async () => (await index.upkeep.incomplete(query)).length === 0);
  assert.deepEqual(
    (await index.list({})).map(({ stream }) => stream),
    ['shop.fulfilment.v1-core-o1'],
  );
});

test('while the index is away it is told once, and filled when it is back', async () => {
  const saga = orderSaga();
  const { clock, store, options } = createSagaRig(saga);
  {
    await using _ = await startSaga(store, saga, options);
    await append(store, placed({ orderId: 'o1' }));
    await until(clock, async () => (await store.sagas.list({})).length === 1);
  }
  const inner = memorySagaIndex();
  let isAway = false;
  const orAway = <T>(work: () => Promise<T>): Promise<T> => {
    const away = new MillraceError('STORE_UNAVAILABLE', 'away', { retryable: true });
    return isAway ? Promise.reject(away) : work();
  };
  const index: SagaIndex = {
    put: (entry) => orAway(() => inner.put(entry)),
    upcoming: (query) => orAway(() => inner.upcoming(query)),
    list: (query) => orAway(() => inner.list(query)),
    upkeep: {
      incomplete: (query) => orAway(() => inner.upkeep.incomplete(query)),
      renew: async (query) => {
        const done = await inner.upkeep.renew(query);
        // In the middle of it.
        isAway = attempts === 0;
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
  await using _ = await startSaga(store, saga, { ...options, index, observer });
  await until(clock, () => attempts === 1);
  await clock.advance(3_000);
  isAway = false;
  await until(clock, async () => (await inner.list({})).length === 1);
  await until(clock, () => attempts === 2);
  assert.equal(warned.filter((each) => each === 'index of the saga is away').length, 1);
});
