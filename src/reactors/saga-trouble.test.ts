import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { CommandRejected } from '../aggregates/command-rejected.ts';
import { defineCommand } from '../contracts/define-command.ts';
import { defineEvent } from '../contracts/define-event.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { Snooze } from '../foundation/handler-outcome.ts';
import { until } from '../testing/support/subscriptions/rig.ts';
import { givenEvent } from '../testing/given-event.ts';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import { decideEvent } from './decide-saga.ts';
import { createDriveSaga } from './drive-saga.ts';
import { orderSaga, paid, placed, quickRetry } from '../testing/support/reactors/example-order.ts';
import type { SendCommand } from './reaction.ts';
import { saga } from './saga.ts';
import { createSagaJournal } from './saga-journal.ts';
import { memorySagaIndex } from '../testing/support/reactors/memory-saga-index.ts';
import { append, createSagaRig } from '../testing/support/reactors/saga-rig.ts';
import { createSagaRunner, startSaga } from './saga-runner.ts';

const asked = defineEvent('question.asked.v1', z.object({ orderId: z.string() }));
const answered = defineEvent('question.answered.v1', z.object({ orderId: z.string() }));
const think = defineCommand('mind.think', z.object({ orderId: z.string() }));
const forget = defineCommand('mind.forget', z.object({ orderId: z.string() }));

/** A saga whose code throws in the given methods. */
function faultySaga(faults: Set<string>) {
  const mayFail = (method: string): void => {
    if (faults.has(method)) throw new Error(`a mistake at ${method}`);
  };
  return saga({
    bc: 'help',
    name: 'question',
    version: 1,
    from: 'start',
    events: [asked, answered],
    startOn: ['question.asked.v1'],
    correlateBy: ({ payload }) => payload.orderId,
    initial: 0,
    on: {
      'question.asked.v1': ({ payload }) => {
        mayFail('start');
        return [
          { run: 'think', id: 'm', command: think(payload) },
          { timer: 'reminder', afterMs: 500 },
        ];
      },
      'question.answered.v1': () => {
        mayFail('event');
        return [{ end: 'completed' }];
      },
    },
    steps: {
      think: {
        onDone: () => {
          mayFail('onDone');
          return [];
        },
        onDenied: () => {
          mayFail('onDenied');
          return [{ end: 'failed', reason: 'no thought' }];
        },
        compensate: ({ key }) => {
          mayFail('compensate');
          return { id: 'm', command: forget({ orderId: key }) };
        },
      },
    },
    timers: {
      reminder: () => {
        mayFail('timer');
        return [{ end: 'failed', reason: 'no answer' }];
      },
    },
    retry: quickRetry,
  });
}

const q1 = { orderId: 'q1' };

for (const [method, at] of [
  ['onDone', 'answer'],
  ['timer', 'timer'],
  ['compensate', 'compensation'],
] as const) {
  test(`an error in ${method} parks the saga; fixed and resumed, it continues`, async () => {
    const faults = new Set([method as string]);
    const faulty = faultySaga(faults);
    const rig = createSagaRig(faulty);
    await using runner = await startSaga(rig.db, faulty, rig.options);
    await append(rig.db.store, asked(q1));
    await rig.untilStatus('q1', 'parked');
    const { parked } = await rig.admin.get(rig.at('q1'));
    assert.equal(parked?.at, at);
    assert.equal(parked.reason, 'handler-failed');
    assert.equal(parked.message, `a mistake at ${method}`);
    faults.clear();
    await rig.admin.resume(rig.at('q1'), { by: 'ada' });
    await rig.untilStatus('q1', 'compensated');
    assert.deepEqual(rig.receiver.effects, ['mind.think q1', 'mind.forget q1']);
    assert.equal(await rig.db.subscriptions.deadLetters.count({}), 0);
    assert.equal(runner.state, 'started');
  });
}

test('a skipped step outcome, timer or event counts as done', async () => {
  const faults = new Set(['onDone']);
  const faulty = faultySaga(faults);
  const rig = createSagaRig(faulty);
  await using runner = await startSaga(rig.db, faulty, rig.options);
  await append(rig.db.store, asked(q1));
  await rig.untilStatus('q1', 'parked');
  faults.clear();
  faults.add('timer');
  await rig.admin.skip(rig.at('q1'), { by: 'ada' });
  await until(rig.clock, async () => {
    const { parked } = await rig.admin.get(rig.at('q1'));
    return parked?.at === 'timer';
  });
  faults.add('event');
  await append(rig.db.store, answered(q1));
  await runner.subscription.whenCaughtUp();
  await rig.admin.skip(rig.at('q1'), { by: 'ada' });
  await until(rig.clock, async () => {
    const { parked } = await rig.admin.get(rig.at('q1'));
    return parked?.at === 'event';
  });
  await rig.admin.skip(rig.at('q1'), { by: 'ada' });
  const { status, steps, queuedEvents, timers } = await rig.admin.get(rig.at('q1'));
  assert.equal(status, 'running');
  assert.equal(steps[0]?.status, 'done');
  assert.equal(queuedEvents, 0);
  assert.deepEqual(timers, []);
});

test('an error at the start makes the event a dead letter, and its replay starts the saga', async () => {
  const faults = new Set(['start']);
  const faulty = faultySaga(faults);
  const rig = createSagaRig(faulty);
  await using runner = await startSaga(rig.db, faulty, rig.options);
  await append(rig.db.store, asked(q1));
  const { deadLetters } = rig.db.subscriptions;
  await until(rig.clock, async () => (await deadLetters.count({ status: 'pending' })) === 1);
  faults.clear();
  await deadLetters.replay({}, { by: 'ada', atMs: rig.clock.now() });
  await rig.untilStatus('q1', 'running');
  assert.equal(runner.state, 'started');
});

test('a denied step may continue with other actions', async () => {
  const faulty = faultySaga(new Set());
  const rig = createSagaRig(faulty);
  rig.receiver.answer('mind.think', 'reject');
  await using runner = await startSaga(rig.db, faulty, rig.options);
  await append(rig.db.store, asked(q1));
  await rig.untilStatus('q1', 'compensated');
  assert.equal((await rig.admin.get(rig.at('q1'))).reason, 'no thought');
  // No step took effect, so nothing is compensated.
  assert.deepEqual(rig.receiver.effects, []);
  assert.equal(runner.state, 'started');
});

test('a command that exceeds its time limit is aborted and sent again', async () => {
  const order = orderSaga();
  const rig = createSagaRig(order);
  let isStuck = true;
  await using runner = await startSaga(rig.db, order, {
    ...rig.options,
    send: async (request) => {
      if (!isStuck) return rig.receiver.send(request);
      isStuck = false;
      // Settles only when aborted.
      return new Promise((_resolve, reject) => {
        request.signal?.addEventListener('abort', () => reject(new Error('aborted')));
      });
    },
  });
  await append(rig.db.store, placed({ orderId: 'o1' }));
  await append(rig.db.store, paid({ orderId: 'o1' }));
  await rig.untilStatus('o1', 'completed');
  assert.equal(rig.receiver.effects[0], 'stock.reserve o1');
  assert.equal(runner.state, 'started');
});

test('two events of one key, handled concurrently by two processes, are serialised', async () => {
  const order = orderSaga({ shards: 4 });
  const rig = createSagaRig(order);
  await using first = await startSaga(rig.db, order, rig.options);
  await using second = await startSaga(rig.db, order, rig.options);
  await until(
    rig.clock,
    () =>
      first.subscription.status.shards.length === 2 &&
      second.subscription.status.shards.length === 2,
  );
  const keys = Array.from({ length: 20 }, (_, each) => `n${each}`);
  await Promise.all(
    keys.flatMap((orderId) => [
      append(rig.db.store, placed({ orderId })),
      append(rig.db.store, paid({ orderId })),
    ]),
  );
  await until(rig.clock, async () => {
    const { items: sagas } = await rig.admin.list({ status: 'completed' });
    return sagas.length === keys.length;
  });
  for (const orderId of keys) {
    assert.deepEqual(
      rig.receiver.effects.filter((effect) => effect.endsWith(` ${orderId}`)),
      [`stock.reserve ${orderId}`, `card.charge ${orderId}`, `parcel.ship ${orderId}`],
    );
  }
});

test('a command accepted from an expired owner after its rejection to the new one is compensated', async () => {
  const order = orderSaga();
  const { clock, db, receiver, admin, at } = createSagaRig(order);
  const journal = createSagaJournal(db.store, order, { clock });
  const stream = 'shop.fulfilment.v1-core-o1';
  const { signal } = new AbortController();
  const start = { attempt: 1, signal, trace: {} };
  const event = givenEvent(placed({ orderId: 'o1' }), { index: 0, nowMs: clock.now() });
  const context = { saga: order, tenant: 'core', key: 'o1', nowMs: clock.now() };
  await journal.change(stream, (state) => ({
    facts: decideEvent(state, event, context),
    cause: { id: 'start', causationId: event.eventId },
  }));
  const drive = (send: SendCommand) =>
    createDriveSaga({ store: db.store, saga: order, journal, send, clock });
  const [own] = await db.store.readStream(stream).toArray();
  assert.ok(own !== undefined);
  const rejecting = drive(() => Promise.reject(new CommandRejected('sold-out', 'there is none')));
  const overtaken = drive(async (request) => {
    // During the pause, the other process ended the saga.
    assert.equal((await rejecting(own, start)).status, 'compensated');
    return receiver.send(request);
  });
  assert.equal((await overtaken(own, start)).status, 'compensating');
  assert.equal((await drive(receiver.send)(own, start)).status, 'compensated');
  assert.deepEqual(receiver.effects, ['stock.reserve o1', 'stock.release o1']);
  assert.equal((await admin.get(at('o1'))).reason, 'reserve: accepted after it was rejected');
});

test('an inconsistent definition is rejected', () => {
  const invalid = (error: unknown): boolean =>
    error instanceof MillraceError && error.code === 'REACTOR_INVALID';
  const define = (more: object) =>
    saga({
      bc: 'help',
      name: 'broken',
      version: 1,
      from: 'end',
      events: [asked],
      startOn: ['question.asked.v1'],
      correlateBy: () => 'x',
      initial: {},
      on: { 'question.asked.v1': () => [] },
      steps: {},
      ...more,
    });
  assert.throws(() => define({ startOn: [] }), invalid);
  assert.throws(() => define({ startOn: ['question.answered.v1'] }), invalid);
  assert.throws(() => define({ on: {} }), invalid);
  assert.throws(() => define({ expiresAfterMs: 0.5 }), invalid);
  assert.throws(() => define({ commandTimeoutMs: 0 }), invalid);
});

test('ended and parked sagas are reported once, and commands carry the trace context', async () => {
  const order = orderSaga();
  const rig = createSagaRig(order);
  rig.receiver.answer('parcel.ship', 'reject');
  rig.receiver.answer('card.refund', 'reject', 'accept');
  const counts: string[] = [];
  const errors: object[] = [];
  const quiet = (): void => undefined;
  const observer: Observer = {
    count: (name, { outcome }) => {
      if (name === 'sagas_total') counts.push(String(outcome));
    },
    log: { debug: quiet, info: quiet, warn: quiet, error: (fields) => void errors.push(fields) },
  };
  await using runner = await startSaga(rig.db, order, { ...rig.options, observer });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await append(rig.db.store, placed({ orderId: 'o1' }), { headers: { traceparent, secret: 'x' } });
  await append(rig.db.store, paid({ orderId: 'o1' }));
  await rig.untilStatus('o1', 'parked');
  await rig.admin.resume(rig.at('o1'), { by: 'ada' });
  await rig.untilStatus('o1', 'compensated');
  await runner.subscription.whenCaughtUp();
  assert.deepEqual(counts, ['parked', 'compensated']);
  const [error] = errors as { readonly stream: string; readonly reason: string }[];
  assert.equal(error?.stream, 'shop.fulfilment.v1-core-o1');
  assert.equal(error.reason, 'said-no');
  assert.equal(errors.length, 1);
  assert.deepEqual(rig.receiver.calls[0]?.headers, { traceparent });
});

test('a snoozed command does not use up attempts', async () => {
  const order = orderSaga();
  const rig = createSagaRig(order);
  let snoozes = 0;
  await using runner = await startSaga(rig.db, order, {
    ...rig.options,
    send: (request) => {
      snoozes += 1;
      if (snoozes <= 10) return Promise.reject(new Snooze(10));
      return rig.receiver.send(request);
    },
  });
  await append(rig.db.store, placed({ orderId: 'o1' }));
  await append(rig.db.store, paid({ orderId: 'o1' }));
  await rig.untilStatus('o1', 'completed');
  assert.equal(runner.state, 'started');
});

test('an old version with an empty startOn finishes its running sagas', async () => {
  const order = orderSaga();
  const rig = createSagaRig(order);
  {
    await using runner = await startSaga(rig.db, order, rig.options);
    await append(rig.db.store, placed({ orderId: 'o1' }));
    await rig.untilStatus('o1', 'running');
    assert.equal(runner.state, 'started');
  }
  const old = orderSaga({ startOn: [], onEarly: 'ignore' });
  await using runner = await startSaga(rig.db, old, rig.options);
  await append(rig.db.store, placed({ orderId: 'o2' }));
  await append(rig.db.store, paid({ orderId: 'o2' }));
  await append(rig.db.store, paid({ orderId: 'o1' }));
  await rig.untilStatus('o1', 'completed');
  await runner.subscription.whenCaughtUp();
  assert.equal((await rig.admin.list()).items.length, 1);
});

test('a reset rebuilds a lost index without sending commands', async () => {
  const order = orderSaga();
  const rig = createSagaRig(order);
  {
    await using runner = await startSaga(rig.db, order, rig.options);
    await append(rig.db.store, placed({ orderId: 'o1' }));
    await append(rig.db.store, placed({ orderId: 'o2' }));
    await append(rig.db.store, paid({ orderId: 'o2' }));
    await rig.untilStatus('o2', 'completed');
    await until(rig.clock, () => rig.receiver.effects.length === 4);
    assert.equal(runner.state, 'started');
  }
  const { length } = rig.receiver.calls;
  const index = memorySagaIndex();
  await using runner = await startSaga({ ...rig.db, sagas: index }, order, rig.options);
  await runner.subscription.reset();
  await until(rig.clock, async () => (await index.list({ status: 'completed' })).length === 1);
  await until(rig.clock, async () => (await index.list({ status: 'running' })).length === 1);
  assert.equal(rig.receiver.calls.length, length);
  const [upcoming] = await index.upcoming({ saga: order.category, shards: [0], limit: 1 });
  assert.equal(upcoming?.stream, 'shop.fulfilment.v1-core-o1');
});

test('start and stop in any order leave no lease and no timer', async () => {
  const order = orderSaga();
  const rig = createSagaRig(order);
  await stressLifecycle({
    rounds: 100,
    create: () => createSagaRunner(rig.db, order, rig.options),
    async assertReleased() {
      const leases = await rig.db.subscriptions.leases.list(order.subscription);
      assert.ok(leases.every(({ remainingMs }) => remainingMs <= 0));
      assert.equal(rig.clock.sleepers, 0);
    },
  });
});

test('an engine without a saga index is rejected, and the error names the role', () => {
  const order = orderSaga();
  const { db, options } = createSagaRig(order);
  const { store, subscriptions } = db;
  assert.throws(
    () => createSagaRunner({ store, subscriptions } as never, order, options),
    (error) => hasCode(error, 'NOT_SUPPORTED') && error.details['role'] === 'sagas',
  );
});
