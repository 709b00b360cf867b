import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  charge,
  orderSaga,
  paid,
  paymentMs,
  placed,
  refund,
  release,
  reserve,
  ship,
  withdrawn,
} from './support/reactors/example-order.ts';
import { reactor } from '../reactors/reactor.ts';
import { givenReactor } from './given-reactor.ts';
import { givenSaga } from './given-saga.ts';

const o1 = { orderId: 'o1' };
const saga = orderSaga();

test('checks the commands, status, data and timers of a saga', () => {
  givenSaga(saga, [])
    .when(placed(o1))
    .thenSends([{ id: 'main', command: reserve(o1) }])
    .thenStatus('running')
    .thenData({ orderId: 'o1', isPaid: false })
    .thenTimers({ payment: paymentMs });
  givenSaga(saga, [placed(o1), { passMs: 1_000 }])
    .thenTimers({ payment: paymentMs - 1_000 })
    .when(paid(o1))
    .thenSends([
      { id: 'card', command: charge(o1) },
      { id: 'o1', command: ship(o1) },
    ])
    .thenStatus('completed')
    .thenTimers({});
});

test('simulates rejections, missing replies, time and operators', () => {
  givenSaga(saga, [placed(o1)])
    .when(paid(o1), { rejected: { 'parcel.ship': 'sold-out' } })
    .thenSends([
      { id: 'card', command: charge(o1) },
      { id: 'o1', command: ship(o1) },
      { id: 'card', command: refund(o1) },
      { id: 'main', command: release(o1) },
    ])
    .thenStatus('compensated');
  givenSaga(saga, [placed(o1)])
    .when({ passMs: paymentMs })
    .thenSends([{ id: 'main', command: release(o1) }])
    .thenStatus('compensated');
  givenSaga(saga, [placed(o1), withdrawn(o1)], { rejected: { 'stock.release': 'no' } })
    .thenStatus('parked')
    .when({ operator: 'resume' }, {})
    .thenSends([{ id: 'main', command: release(o1) }])
    .thenStatus('compensated');
  givenSaga(saga, [paid(o1)])
    .thenStatus('waiting')
    .when(placed(o1))
    .thenStatus('completed');
  givenSaga(orderSaga({ onUnanswered: 'compensate' }), [])
    .when(placed(o1), { unanswered: ['stock.reserve'] })
    .thenSends([
      { id: 'main', command: reserve(o1) },
      { id: 'main', command: release(o1) },
    ]);
});

test('a failed assertion shows expected and actual values', () => {
  const begun = givenSaga(saga, [placed(o1)], { rejected: { 'stock.reserve': 'sold-out' } });
  assert.throws(
    () => begun.thenStatus('running'),
    /expected the saga to be running, but it is compensated \(reserve: sold-out\)/,
  );
  assert.throws(
    () => givenSaga(saga, []).when(placed(o1)).thenSends([]),
    (error) => error instanceof Error && /\+.*stock\.reserve/s.test(error.message),
  );
  assert.throws(() => begun.thenTimers({ payment: 1 }), /payment/);
  assert.throws(() => begun.thenData({}), /orderId/);
  assert.throws(
    () => givenSaga(saga, [placed(o1), paid({ orderId: 'o2' })]),
    /payment\.received\.v1 belongs to 'o2', and the others to 'o1'/,
  );
});

test('checks the commands of a reactor', async () => {
  const restock = reactor({
    name: 'sub:shop:restock:v1',
    events: [withdrawn],
    from: 'end',
    onRejected: 'ignore',
    on: {
      'order.withdrawn.v1': ({ payload, aggregate }) => ({
        id: aggregate.id,
        command: release(payload),
      }),
    },
  });
  const when = givenReactor(restock).when(withdrawn(o1), { id: 'w1' });
  await when.thenSends([{ id: 'w1', command: release(o1) }]);
  await assert.rejects(when.thenSends([]), /stock\.release/);
});
