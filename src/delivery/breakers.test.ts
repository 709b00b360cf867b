import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { memoryBreakerStore, type BreakerStore } from './breaker-store.ts';
import { createDelivery } from './create-delivery.ts';
import type { DeliveryMessage } from './delivery-message.ts';
import type { DeliveryOutcome } from './delivery-outcome.ts';

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'partner:acme',
  eventType: 'payment.completed.v1',
  payload: {},
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
};
const type = message.integrationType;
const policy = {
  failuresMax: 2,
  openMs: 5_000,
  openMsMax: 60_000,
  probesToClose: 2,
  probeMsMax: 9_000,
};
const works: DeliveryOutcome = { kind: 'sent' };
const fails: DeliveryOutcome = { kind: 'retry', error: 'HTTP 500' };

/** Two processes from the view of the store. */
function openTwo(store?: BreakerStore) {
  const clock = fakeClock();
  const breakers = store ?? memoryBreakerStore(clock);
  const receiver = { outcome: works, calls: 0 };
  const lines: string[] = [];
  const log = (_fields: object, text: string): void => void lines.push(text);
  const observer = { log: { debug: log, info: log, warn: log, error: log } };
  const open = () =>
    createDelivery({
      clock,
      breakers,
      observer,
      destinations: {
        partner: {
          breaker: policy,
          send: async () => {
            receiver.calls += 1;
            return receiver.outcome;
          },
        },
      },
    });
  return { clock, breakers, receiver, lines, one: open(), two: open() };
}

/** Waits for all running calls of the store. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
};

async function fail(delivery: ReturnType<typeof openTwo>['one'], times = 2): Promise<void> {
  for (let index = 0; index < times; index += 1) await delivery.deliver(message);
  await turns();
}

test('a second after one process opens a breaker, the other stops calling', async () => {
  const { clock, receiver, one, two } = openTwo();
  await two.deliver(message);
  await turns();
  receiver.outcome = fails;
  await fail(one);
  await clock.advance(1_000);
  // This call is sent and triggers a read of the store; no call waits for the store.
  await two.deliver(message);
  await turns();
  const calls = receiver.calls;
  const postponed = await two.deliver(message);
  assert.ok(
    postponed.kind === 'retry' && postponed.attempted === false && postponed.afterMs === 4_000,
  );
  assert.equal(receiver.calls, calls);
});

test('one process probes, and after it closed the breaker the other continues', async () => {
  const { clock, receiver, one, two } = openTwo();
  receiver.outcome = fails;
  await fail(one);
  await two.deliver(message);
  await turns();
  await clock.advance(5_000);
  receiver.outcome = works;
  receiver.calls = 0;
  assert.equal((await one.deliver(message)).kind, 'sent');
  const postponed = await two.deliver(message);
  assert.ok(
    postponed.kind === 'retry' && postponed.attempted === false && postponed.afterMs === 1_000,
  );
  assert.equal((await one.deliver(message)).kind, 'sent');
  assert.equal(one.breakerOf(type).kind, 'closed');
  assert.equal(receiver.calls, 2);
  await turns();
  await clock.advance(1_000);
  await two.deliver(message);
  await turns();
  assert.equal(two.breakerOf(type).kind, 'closed');
  assert.equal((await two.deliver(message)).kind, 'sent');
});

test('a failed probe opens the breaker of all processes for longer', async () => {
  const { clock, receiver, one, two } = openTwo();
  receiver.outcome = fails;
  await fail(one);
  await two.deliver(message);
  await turns();
  await clock.advance(5_000);
  await one.deliver(message);
  await turns();
  await two.deliver(message);
  await turns();
  const postponed = await two.deliver(message);
  assert.ok(
    postponed.kind === 'retry' && postponed.attempted === false && postponed.afterMs === 10_000,
  );
});

test('when the prober dies, the other one probes', async () => {
  const { clock, breakers, receiver, one, two } = openTwo();
  receiver.outcome = fails;
  await fail(one);
  await two.deliver(message);
  await turns();
  await clock.advance(5_000);
  assert.equal(await breakers.probe(type, { holder: 'dies', forMs: policy.probeMsMax }), true);
  receiver.outcome = works;
  const postponed = await two.deliver(message);
  assert.ok(postponed.kind === 'retry' && postponed.attempted === false);
  await clock.advance(policy.probeMsMax);
  assert.equal((await two.deliver(message)).kind, 'sent');
  assert.equal((await two.deliver(message)).kind, 'sent');
  assert.equal(two.breakerOf(type).kind, 'closed');
});

test('without the store each process continues, logs it once, and publishes its state later', async () => {
  const clockless = memoryBreakerStore();
  let isAway = true;
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isAway) throw new Error('the store is unavailable');
    return work();
  };
  const store: BreakerStore = {
    list: () => guarded(() => clockless.list()),
    open: (...args) => guarded(() => clockless.open(...args)),
    probe: (...args) => guarded(() => clockless.probe(...args)),
    close: (...args) => guarded(() => clockless.close(...args)),
  };
  const { clock, receiver, lines, one } = openTwo(store);
  receiver.outcome = fails;
  await fail(one);
  assert.equal(one.breakerOf(type).kind, 'open');
  await clock.advance(5_000);
  await one.deliver(message);
  await turns();
  assert.equal(one.breakerOf(type).kind, 'open');
  assert.equal(
    lines.filter((line) => line === 'breaker store unavailable, breakers not shared').length,
    1,
  );
  isAway = false;
  await clock.advance(1_000);
  await one.deliver(message);
  await turns();
  const [shared] = await clockless.list();
  assert.equal(shared?.destination, type);
  assert.ok(lines.includes('breaker store available, breakers shared'));
});

test('no call reads the store while all breakers are closed', async () => {
  let probeCalls = 0;
  const inner = memoryBreakerStore();
  const store: BreakerStore = {
    ...inner,
    list: () => {
      probeCalls += 1;
      return inner.list();
    },
    probe: async () => assert.fail('no process probes'),
  };
  const { one } = openTwo(store);
  for (let index = 0; index < 100; index += 1) await one.deliver(message);
  assert.equal(probeCalls, 1);
});

test('a store that hangs delays a probe by at most a second, and sharing resumes', async () => {
  const inner = memoryBreakerStore();
  let hangs = true;
  const guarded = <T>(work: () => Promise<T>): Promise<T> =>
    hangs ? new Promise(() => undefined) : work();
  const store: BreakerStore = {
    list: () => guarded(() => inner.list()),
    open: (...args) => guarded(() => inner.open(...args)),
    probe: (...args) => guarded(() => inner.probe(...args)),
    close: (...args) => guarded(() => inner.close(...args)),
  };
  const { clock, receiver, one } = openTwo(store);
  receiver.outcome = fails;
  await fail(one);
  await clock.advance(policy.openMs);
  receiver.outcome = works;
  const probe = one.deliver(message);
  await turns();
  await clock.advance(1_000);
  assert.equal((await probe).kind, 'sent');
  hangs = false;
  receiver.outcome = fails;
  await fail(one, 1);
  for (let second = 0; second < 3; second += 1) {
    await clock.advance(1_000);
    await one.deliver(message);
    await turns();
  }
  assert.equal((await inner.list())[0]?.destination, type);
});
