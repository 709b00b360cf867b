import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { Snooze } from '../foundation/handler-outcome.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createDelivery, deliveryLimits, type DestinationSettings } from './create-delivery.ts';
import type { DeliveryMessage } from './delivery-message.ts';
import type { DeliveryOutcome } from './delivery-outcome.ts';
import {
  destinationConformance,
  type Received,
} from '../testing/conformance/delivery/destination.ts';
import type { DeliveryContext, Destination } from './destination.ts';

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'partner:acme',
  eventType: 'payment.completed.v1',
  payload: { text: 'hello' },
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
  tenantId: 'core',
  correlationId: 'c-1',
};

const failing: Destination = async () => ({ kind: 'retry', error: 'HTTP 500' });

test('a function that returns has sent the message, and gets its context', async () => {
  const seen: DeliveryContext[] = [];
  const { deliver } = createDelivery({
    destinations: { partner: async (_message, context) => void seen.push(context) },
  });
  assert.deepEqual(await deliver(message, { attempt: 3 }), { kind: 'sent' });
  const [{ signal, ...context } = {} as DeliveryContext] = seen;
  assert.deepEqual(context, {
    idempotencyKey: 'e-1',
    attempt: 3,
    isDuplicate: true,
    tenantId: 'core',
    correlationId: 'c-1',
  });
  assert.equal(signal.aborted, false);
});

test('a destination that returns any other value has sent the message', async () => {
  const taken: unknown[] = [];
  const push: Destination = async ({ payload }) => taken.push(payload) as unknown as undefined;
  const { deliver } = createDelivery({ destinations: { partner: push } });
  assert.deepEqual(await deliver(message), { kind: 'sent' });
});

test('the whole integration type takes precedence over the part before its colon', async () => {
  const { deliver } = createDelivery({
    destinations: {
      partner: async () => ({ kind: 'sent', receipt: 'general' }),
      'partner:acme': async () => ({ kind: 'sent', receipt: 'own' }),
    },
  });
  assert.deepEqual(await deliver(message), { kind: 'sent', receipt: 'own' });
  const other = { ...message, integrationType: 'partner:other' };
  assert.deepEqual(await deliver(other), { kind: 'sent', receipt: 'general' });
});

test('a message with an unknown destination is retried later', async () => {
  const { deliver } = createDelivery({ destinations: {} });
  const outcome = await deliver(message);
  assert.ok(outcome.kind === 'retry' && outcome.afterMs === deliveryLimits.unknownRetryMs);
  assert.match(outcome.error, /partner:acme/);
});

test('an error of a destination becomes an outcome, also if it is thrown synchronously', async () => {
  const thrower: Destination = () => {
    throw new Error('at once');
  };
  const { deliver } = createDelivery({ destinations: { partner: thrower } });
  assert.partialDeepStrictEqual(await deliver(message), {
    kind: 'retry',
    error: 'at once',
    facts: { name: 'Error' },
  });
});

test('a destination that ignores its signal is not waited for after the time limit', async () => {
  const clock = fakeClock();
  let inner: AbortSignal | undefined;
  const { deliver } = createDelivery({
    clock,
    destinations: {
      partner: {
        timeoutMs: 500,
        send: (_message, { signal }) => {
          inner = signal;
          return new Promise(() => undefined);
        },
      },
    },
  });
  const call = deliver(message);
  while (clock.sleepers === 0) await new Promise(setImmediate);
  await clock.advance(500);
  const outcome = await call;
  assert.ok(outcome.kind === 'retry' && outcome.ambiguous === true);
  assert.match(outcome.error, /500 ms/);
  assert.equal(inner?.aborted, true);
});

test('the shorter limit of the destination and its settings fires', async () => {
  const clock = fakeClock();
  const hangs = Object.assign(() => new Promise<void>(() => undefined), { timeoutMs: 300 });
  const errorAfter = async (settings: Partial<DestinationSettings>, ms: number) => {
    const { deliver } = createDelivery({
      clock,
      destinations: { partner: { send: hangs, ...settings } },
    });
    const call = deliver(message);
    while (clock.sleepers === 0) await new Promise(setImmediate);
    await clock.advance(ms);
    const outcome = await call;
    return outcome.kind === 'retry' ? outcome.error : outcome.kind;
  };
  assert.equal(await errorAfter({}, 300), 'no response within 300 ms');
  assert.equal(await errorAfter({ timeoutMs: 500 }, 300), 'no response within 300 ms');
  assert.equal(await errorAfter({ timeoutMs: 100 }, 100), 'no response within 100 ms');
});

test('a destination that obeys its signal still reports its outcome', async () => {
  const clock = fakeClock();
  const send: Destination = (_message, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve({ kind: 'sent', receipt: 'just in time' }));
    });
  const { deliver } = createDelivery({ clock, destinations: { partner: { send, timeoutMs: 5 } } });
  const call = deliver(message);
  while (clock.sleepers === 0) await new Promise(setImmediate);
  await clock.advance(5);
  assert.deepEqual(await call, { kind: 'sent', receipt: 'just in time' });
});

test('a caller that passes limit enforces the only time limit, and its timeout counts as a failure', async () => {
  const clock = fakeClock();
  const delivery = createDelivery({
    clock,
    destinations: {
      partner: {
        breaker: { failuresMax: 1 },
        timeoutMs: 500,
        send: () => new Promise(() => undefined),
      },
    },
  });
  const limits: number[] = [];
  const attempt = new AbortController();
  const { signal } = attempt;
  const call = delivery.deliver(message, { signal, limit: (ms) => void limits.push(ms) });
  while (limits.length === 0) await new Promise(setImmediate);
  assert.deepEqual([limits, clock.sleepers], [[500], 0]);
  attempt.abort(new MillraceError('HANDLER_TIMEOUT', 'no response within 500 ms'));
  const outcome = await call;
  assert.ok(outcome.kind === 'retry' && outcome.error === 'no response within 500 ms');
  assert.equal(delivery.breakerOf('partner:acme').kind, 'open');
});

test('stopping the process cancels the running call, and the destination has not failed', async () => {
  const stopping = new AbortController();
  const delivery = createDelivery({
    destinations: {
      partner: { breaker: { failuresMax: 1 }, send: () => new Promise(() => undefined) },
    },
  });
  const call = delivery.deliver(message, { signal: stopping.signal });
  stopping.abort();
  assert.equal((await call).kind, 'retry');
  assert.equal(delivery.breakerOf('partner:acme').kind, 'closed');
  const next = await delivery.deliver(message, { signal: stopping.signal });
  assert.ok(next.kind === 'retry' && next.attempted === false);
});

test('stopping the process after a call does not abort later work of the destination', async () => {
  const stopping = new AbortController();
  let inner: AbortSignal | undefined;
  const send: Destination = async (_message, { signal }) => {
    inner = signal;
  };
  const { deliver } = createDelivery({ destinations: { partner: send } });
  await deliver(message, { signal: stopping.signal });
  stopping.abort();
  assert.equal(inner?.aborted, false);
});

test('only the breaker of the failing integration type opens', async () => {
  const clock = fakeClock();
  let isWell = false;
  let calls = 0;
  const send: Destination = async (each) => {
    if (each.integrationType === 'partner:acme') calls += 1;
    return isWell || each.integrationType !== 'partner:acme'
      ? { kind: 'sent' }
      : { kind: 'retry', error: 'HTTP 500' };
  };
  const { deliver } = createDelivery({
    clock,
    destinations: { partner: { send, breaker: { failuresMax: 2, openMs: 1_000 } } },
  });
  await deliver(message);
  await deliver(message);
  const rejected = await deliver(message);
  assert.deepEqual(rejected, {
    kind: 'retry',
    error: 'the breaker is open',
    afterMs: 1_000,
    attempted: false,
  });
  assert.equal(calls, 2);
  assert.equal((await deliver({ ...message, integrationType: 'partner:other' })).kind, 'sent');
  isWell = true;
  await clock.advance(1_000);
  assert.equal((await deliver(message)).kind, 'sent');
});

test('a dead message counts as a success for the breaker', async () => {
  const outcomes: DeliveryOutcome[] = [
    { kind: 'retry', error: '1' },
    { kind: 'dead', error: 'HTTP 422' },
    { kind: 'retry', error: '2' },
  ];
  const delivery = createDelivery({
    destinations: { partner: { send: async () => outcomes.shift(), breaker: { failuresMax: 2 } } },
  });
  for (let count = 0; count < 3; count += 1) await delivery.deliver(message);
  assert.equal(delivery.breakerOf('partner:acme').kind, 'closed');
});

test('a Retry-After of the receiver holds back all messages of that integration type', async () => {
  const clock = fakeClock();
  const delivery = createDelivery({
    clock,
    destinations: {
      partner: async () => ({ kind: 'retry', error: '429', afterMs: 30_000, throttled: true }),
    },
  });
  await delivery.deliver(message);
  const next = await delivery.deliver({ ...message, id: 'o-2' });
  assert.ok(next.kind === 'retry' && next.attempted === false && next.afterMs === 30_000);
});

test('a tenant over its limit waits briefly here, and longer in the ledger; others continue', async () => {
  const clock = fakeClock();
  let sent = 0;
  const { deliver } = createDelivery({
    clock,
    rateWaitMsMax: 1_000,
    destinations: {
      partner: {
        send: async () => void (sent += 1),
        tenantRateLimit: { perSecond: 2, burst: 1 },
      },
    },
  });
  assert.equal((await deliver(message)).kind, 'sent');
  const second = deliver(message);
  const third = deliver(message);
  const fourth = await deliver(message);
  assert.ok(fourth.kind === 'retry' && fourth.attempted === false);
  assert.equal(fourth.error, 'rate limit');
  assert.equal((await deliver({ ...message, tenantId: 'other' })).kind, 'sent');
  assert.equal(sent, 2);
  await clock.advance(500);
  assert.equal((await second).kind, 'sent');
  await clock.advance(500);
  assert.equal((await third).kind, 'sent');
});

test('a wait for a rate limit ends with the signal, without an attempt', async () => {
  const stopping = new AbortController();
  const { deliver } = createDelivery({
    clock: fakeClock(),
    rateWaitMsMax: 1_000,
    destinations: { partner: { send: failing, rateLimit: { perSecond: 2, burst: 1 } } },
  });
  await deliver(message);
  const waiting = deliver(message, { signal: stopping.signal });
  stopping.abort();
  const outcome = await waiting;
  assert.ok(outcome.kind === 'retry' && outcome.attempted === false);
});

test('a snooze is not a failure: it is neither logged nor counted by the breaker', async () => {
  const logged: object[] = [];
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields: object) => void logged.push(fields),
    error: () => undefined,
  };
  const snoozing: Destination = async () => {
    throw new Snooze(10);
  };
  const delivery = createDelivery({
    observer: { log },
    destinations: { partner: { send: snoozing, breaker: { failuresMax: 1 } }, broken: failing },
  });
  await delivery.deliver(message);
  assert.equal(delivery.breakerOf('partner:acme').kind, 'closed');
  assert.deepEqual(logged, []);
  await delivery.deliver({ ...message, integrationType: 'broken' });
  assert.equal(logged.length, 1);
  // Ids only: neither the payload nor the response of the receiver.
  assert.ok(!JSON.stringify(logged).includes('hello'));
});

test('an observer that throws does not affect the delivery', async () => {
  const observer: Observer = {
    count: () => {
      throw new Error('broken');
    },
  };
  const { deliver } = createDelivery({
    observer,
    destinations: { partner: async () => undefined },
  });
  assert.equal((await deliver(message)).kind, 'sent');
});

test('invalid settings are rejected when the delivery is created', () => {
  const send = failing;
  const bad = [
    { send, timeoutMs: 0 },
    { send, rateLimit: { perSecond: -1 } },
    { send, breaker: { failuresMax: Number.NaN } },
  ];
  for (const settings of bad) {
    assert.throws(() => createDelivery({ destinations: { x: settings } }), {
      code: 'CONFIG_INVALID',
    });
  }
});

const arrived: Received[] = [];
for (const { name, skip, run } of destinationConformance({
  destination: async ({ payload }, { idempotencyKey, signal }) => {
    signal.throwIfAborted();
    arrived.push({ idempotencyKey, text: String(payload['text']) });
  },
  received: async () => arrived,
})) {
  test(`a destination of one function: ${name}`, { skip: skip ?? false }, run);
}
