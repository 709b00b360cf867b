import { openMemory } from '../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutboxDispatcher } from '../outbox/index.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createCallSlots } from './call-slots.ts';
import { createDelivery } from './create-delivery.ts';
import type { DeliveryMessage } from './delivery-message.ts';

const message = (integrationType: string): DeliveryMessage => ({
  id: 'o-1',
  integrationType,
  eventType: 'payment.completed.v1',
  payload: {},
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
});
const never = new AbortController().signal;
const turns = () => new Promise(setImmediate);

test('concurrent calls never exceed the slots; some messages wait, the others get staggered retry times', async () => {
  const clock = fakeClock();
  const running: (() => void)[] = [];
  let most = 0;
  const { deliver } = createDelivery({
    clock,
    destinations: {
      slow: {
        concurrency: 2,
        send: () =>
          new Promise((resolve) => {
            running.push(resolve);
            most = Math.max(most, running.length);
          }),
      },
    },
  });
  const outcomes = Array.from({ length: 7 }, () => deliver(message('slow:one')));
  await turns();
  assert.equal(running.length, 2);
  const rejected = await Promise.all(outcomes.slice(4));
  assert.deepEqual(
    rejected,
    [50, 100, 150].map((afterMs) => ({
      kind: 'retry',
      error: 'concurrency limit',
      afterMs,
      attempted: false,
    })),
  );
  // A free slot goes to a waiting message immediately.
  running.shift()?.();
  await turns();
  assert.equal(running.length, 2);
  // The other one waits at most `rateWaitMsMax`.
  await clock.advance(100);
  const late = await outcomes[3];
  assert.ok(late?.kind === 'retry' && late.attempted === false);
  for (const end of running.splice(0)) end();
  assert.deepEqual(
    (await Promise.all(outcomes.slice(0, 3))).map(({ kind }) => kind),
    ['sent', 'sent', 'sent'],
  );
  assert.equal(most, 2);
});

test('each integration type has separate slots', async () => {
  let calls = 0;
  const { deliver } = createDelivery({
    destinations: {
      slow: {
        concurrency: 1,
        send: () => {
          calls += 1;
          return calls === 1 ? new Promise(() => undefined) : Promise.resolve();
        },
      },
    },
  });
  const stop = new AbortController();
  const first = deliver(message('slow:one'), { signal: stop.signal });
  await turns();
  assert.equal((await deliver(message('slow:two'))).kind, 'sent');
  stop.abort();
  await first;
});

test('stopping the process ends the wait for a slot, without counting an attempt', async () => {
  const stop = new AbortController();
  const { deliver } = createDelivery({
    clock: fakeClock(),
    destinations: { slow: { concurrency: 1, send: () => new Promise(() => undefined) } },
  });
  const [, waits] = [1, 2].map(() => deliver(message('slow'), { signal: stop.signal }));
  await turns();
  stop.abort();
  assert.deepEqual(await waits, {
    kind: 'retry',
    error: 'the process is stopping',
    afterMs: 0,
    attempted: false,
  });
});

test('an unused destination is not kept in memory', async () => {
  const slots = createCallSlots(fakeClock(), 100);
  const slot = await slots.acquire('slow', 1, never);
  assert.equal(slots.size, 1);
  assert.ok(slot.kind === 'acquired');
  slot.release({ isTried: true });
  assert.equal(slots.size, 0);
});

test('a retry time is at most five seconds away, because the estimated duration may be wrong', async () => {
  const clock = fakeClock();
  const slots = createCallSlots(clock, 100);
  await slots.acquire('slow', 1, never);
  void slots.acquire('slow', 1, never);
  const found: number[] = [];
  for (let index = 0; index < 100; index += 1) {
    const acquired = await slots.acquire('slow', 1, never);
    assert.ok(acquired.kind === 'full');
    found.push(acquired.backInMs);
  }
  assert.equal(found[0], 100);
  assert.equal(found.at(-1), 5_000);
});

test('concurrency is a number above 0', () => {
  const destinations = { slow: { concurrency: 0, send: async () => undefined } };
  assert.throws(() => createDelivery({ destinations }), { code: 'CONFIG_INVALID' });
});

test('a destination that hangs does not delay other destinations', async () => {
  const quick = Promise.withResolvers<void>();
  const { deliver } = createDelivery({
    destinations: {
      slow: { concurrency: 1, send: () => new Promise(() => undefined) },
      quick: async () => quick.resolve(),
    },
  });
  const ledger = openMemory().outbox;
  const rows = [...Array.from({ length: 99 }, () => 'slow'), 'quick'].map(
    (integrationType, at) => ({
      ...message(integrationType),
      sourceEventId: `e-${at}`,
    }),
  );
  await ledger.enqueueMany(rows);
  // Fewer slots than the slow ones would take.
  await using dispatcher = createOutboxDispatcher({ ledger, deliver, concurrency: 4, drainMs: 1 });
  await dispatcher.start();
  await quick.promise;
  const { FAILED, DEAD } = await ledger.counts();
  assert.equal(FAILED + DEAD, 0, 'no attempt is used up');
});
