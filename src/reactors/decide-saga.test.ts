import assert from 'node:assert/strict';
import { test } from 'node:test';
import { givenEvent, givenNowMs } from '../testing/given-event.ts';
import {
  decideStepOutcome,
  decideCompensationOutcome,
  decideDue,
  decideEvent,
  decidePark,
  decideResume,
} from './decide-saga.ts';
import { orderSaga, paid, placed } from '../testing/support/reactors/example-order.ts';
import type { SagaFact } from './saga-fact.ts';
import { evolveSaga, foldSaga, type SagaState } from './saga-state.ts';

const saga = orderSaga();
const context = { saga, tenant: 'test', key: 'o1', nowMs: givenNowMs };
const start = givenEvent(placed({ orderId: 'o1' }), { index: 0, nowMs: givenNowMs });
const payment = givenEvent(paid({ orderId: 'o1' }), { index: 1, nowMs: givenNowMs });

function after(state: SagaState, facts: readonly SagaFact[]): SagaState {
  const event = { eventId: 'e', occurredAt: start.occurredAt, correlationId: 'c' };
  return facts.reduce((before, fact) => evolveSaga(before, fact, event), state);
}

const nothing = foldSaga([]);
const begun = after(nothing, decideEvent(nothing, start, context));
const accepted = { kind: 'accepted' } as const;

test('a duplicate event decides nothing, whatever the status of the saga', () => {
  assert.deepEqual(decideEvent(begun, start, context), []);
  const further = after(begun, decideEvent(begun, payment, context));
  assert.deepEqual(decideEvent(further, payment, context), []);
  assert.deepEqual(decideEvent(further, start, context), []);
  const early = after(nothing, decideEvent(nothing, payment, context));
  assert.equal(early.queued.length, 1);
  assert.deepEqual(decideEvent(early, payment, context), []);
});

test('a second outcome of a step changes nothing', () => {
  const done = after(begun, decideStepOutcome(begun, 0, accepted, context));
  const denial = { kind: 'rejected', reason: 'no', message: 'no', cause: undefined } as const;
  assert.deepEqual(decideStepOutcome(done, 0, accepted, context), []);
  assert.deepEqual(decideStepOutcome(done, 0, denial, context), []);
  assert.deepEqual(decideStepOutcome(begun, 7, accepted, context), []);
});

test('a step accepted after a rejection is compensated, even if the saga has ended', () => {
  const denial = { kind: 'rejected', reason: 'no', message: 'no', cause: undefined } as const;
  const ended = after(begun, decideStepOutcome(begun, 0, denial, context));
  assert.equal(ended.status, 'compensated');
  const facts = decideStepOutcome(ended, 0, accepted, context);
  assert.deepEqual(
    facts.map(({ kind }) => kind),
    ['step-done', 'compensating', 'compensation-requested'],
  );
  const again = after(ended, facts);
  assert.equal(again.status, 'compensating');
  const undone = after(again, decideCompensationOutcome(again, 0, accepted, context));
  assert.equal(undone.status, 'compensated');
  assert.deepEqual(decideStepOutcome(undone, 0, accepted, context), []);
});

test('a step accepted after the saga continued without it parks the saga', () => {
  const steps = new Map(saga.steps).set('reserve', { onDenied: () => [] });
  const other = { ...context, saga: { ...saga, steps } };
  const denial = { kind: 'rejected', reason: 'no', message: 'no', cause: undefined } as const;
  const onItsWay = after(begun, decideStepOutcome(begun, 0, denial, other));
  assert.equal(onItsWay.status, 'running');
  const parked = after(onItsWay, decideStepOutcome(onItsWay, 0, accepted, other));
  assert.equal(parked.parked?.reason, 'accepted-late');
  const skipped = after(parked, decideResume(parked, 'skip', { by: 'ada' }));
  assert.equal(skipped.status, 'running');
  assert.deepEqual(skipped.done, [0]);
});

test('the outcome of a step of a parked saga waits for the operator', () => {
  const why = { reason: 'unanswered', message: 'silence' };
  const parked = after(begun, decidePark(begun, { at: 'step', n: 0 }, why));
  assert.deepEqual(decideStepOutcome(parked, 0, accepted, context), []);
  assert.deepEqual(decidePark(parked, { at: 'step', n: 0 }, why), []);
  const resumed = after(parked, decideResume(parked, 'resume', { by: 'ada' }));
  assert.equal(resumed.status, 'running');
  assert.deepEqual(decideStepOutcome(resumed, 0, accepted, context), [{ kind: 'step-done', n: 0 }]);
  assert.deepEqual(decideResume(resumed, 'skip', { by: 'ada' }), []);
});

test('timers fire in order of their due times, and only while the saga runs', () => {
  const laterMs = givenNowMs + 100_000;
  assert.deepEqual(decideDue(begun, givenNowMs), []);
  assert.deepEqual(decideDue(begun, laterMs), [
    { kind: 'timer-fired', timer: 'payment' },
    { kind: 'timer-fired', timer: '$expiry' },
  ]);
  const failed = after(begun, [{ kind: 'compensating', reason: 'x' }]);
  assert.deepEqual(decideDue(failed, laterMs), []);
});

test('a timer needs a valid time, and an action a known name', () => {
  const lost = (actions: readonly object[]) => () => {
    const broken = { ...saga, react: () => actions as never };
    return decideEvent(nothing, start, { ...context, saga: broken });
  };
  for (const afterMs of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e15]) {
    assert.throws(lost([{ timer: 'payment', afterMs }]), /set timer payment to/);
  }
  assert.throws(lost([{ timer: 'tea', afterMs: 1 }]), /has no timer 'tea'/);
  assert.throws(
    lost([{ run: 'dance', id: 'x', command: { type: 'a.b', payload: 1 } }]),
    /step 'dance'/,
  );
  // Actions after an `end` action are ignored, whatever their order.
  const facts = lost([{ end: 'completed' }, { timer: 'payment', afterMs: 1 }])();
  assert.deepEqual(facts.slice(-2), [{ kind: 'completing' }, { kind: 'completed' }]);
});
