import { openMemory } from '../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, rejectsWith } from '../testing/assertions.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { RetryAfter, Terminal } from '../foundation/handler-outcome.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import type { Deliver } from './attempt-delivery.ts';
import { enqueued, newMessage } from '../testing/conformance/outbox/fixture.ts';
import {
  createOutboxDispatcher,
  type OutboxDispatcher,
  type OutboxDispatcherOptions,
} from './outbox-dispatcher.ts';
import type { OutboxLedger } from './outbox-ledger.ts';

const soon = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 };
const never = new Promise<never>(() => undefined);

function start(
  ledger: OutboxLedger,
  deliver: OutboxDispatcherOptions['deliver'],
  more: Partial<OutboxDispatcherOptions> = {},
) {
  // An hour: only a wake-up can end the waits of this file.
  const options = { ledger, deliver, schedule: soon, tickIntervalMs: 3_600_000, ...more };
  const dispatcher = createOutboxDispatcher(options);
  return dispatcher.start().then(() => dispatcher);
}

async function settled(ledger: OutboxLedger, dispatcher: OutboxDispatcher): Promise<void> {
  await eventually('everything is settled', async () => {
    assert.equal(dispatcher.state, 'started');
    const { PENDING, CLAIMED, FAILED } = await ledger.counts();
    return PENDING + CLAIMED + FAILED === 0;
  });
}

test('the dispatcher sends every message once, and stores it as sent', async () => {
  const ledger = openMemory().outbox;
  const ids = await enqueued(ledger, ...Array.from({ length: 300 }, () => ({})));
  const sent: string[] = [];
  await using dispatcher = await start(ledger, async ({ id }) => void sent.push(id));
  await settled(ledger, dispatcher);
  assert.deepEqual(new Set(sent), new Set(ids));
  assert.equal(sent.length, ids.length);
  assert.equal((await ledger.counts()).SENT, 300);
});

test('an enqueue wakes the dispatcher', async () => {
  const ledger = openMemory().outbox;
  let sent = 0;
  await using dispatcher = await start(ledger, async () => void (sent += 1));
  for (const count of [1, 2, 3]) {
    await enqueued(ledger, {});
    await eventually(`${count} were sent`, async () => sent === count);
  }
  assert.equal(dispatcher.state, 'started');
});

test('tick sends up to its limit of due messages, without a start, and returns their number', async () => {
  const ledger = openMemory().outbox;
  const ids = await enqueued(ledger, ...Array.from({ length: 7 }, () => ({})));
  const sent: string[] = [];
  let atOnce = 0;
  let atOnceMax = 0;
  const dispatcher = createOutboxDispatcher({
    ledger,
    concurrency: 2,
    async deliver({ id }) {
      atOnce += 1;
      atOnceMax = Math.max(atOnceMax, atOnce);
      await nextTurn();
      sent.push(id);
      atOnce -= 1;
    },
  });
  assert.equal(await dispatcher.tick(5), 5);
  assert.deepEqual((await ledger.counts()).SENT, 5);
  assert.equal(atOnceMax, 2);
  assert.equal(await dispatcher.tick(), 2);
  assert.equal(await dispatcher.tick(), 0);
  assert.deepEqual(sent.toSorted(), ids.toSorted());
  assert.equal(dispatcher.state, 'stopped');
  await rejectsWith(() => dispatcher.tick(0), 'OUTBOX_INVALID');
});

test('a tick stores failures, reports a dead message before it resolves, and rejects if the ledger fails', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, { maxAttempts: 1 }, {});
  const reported: string[] = [];
  const dispatcher = createOutboxDispatcher({
    ledger,
    deliver: async () => ({ kind: 'retry', error: 'HTTP 503' }),
    onDead: async (_message, error) => void reported.push(error),
  });
  assert.equal(await dispatcher.tick(), 2);
  const { DEAD, FAILED } = await ledger.counts();
  assert.deepEqual({ DEAD, FAILED, reported }, { DEAD: 1, FAILED: 1, reported: ['HTTP 503'] });
  const failing = {
    ...openMemory().outbox,
    claimDueBatch: () => Promise.reject(new Error('away')),
  };
  const other = createOutboxDispatcher({ ledger: failing, deliver: async () => undefined });
  await assert.rejects(other.tick(), /away/);
});

test('all attempts of a message have the same idempotency key, and are counted', async () => {
  const ledger = openMemory().outbox;
  const seen: unknown[] = [];
  await enqueued(ledger, { sourceEventId: 'e1', tenantId: 't', correlationId: 'c' });
  await using dispatcher = await start(ledger, async (_message, context) => {
    const { idempotencyKey, attempt, tenantId, correlationId } = context;
    seen.push([idempotencyKey, attempt, tenantId, correlationId]);
    return attempt < 3 ? { kind: 'retry', error: 'HTTP 503' } : { kind: 'sent' };
  });
  await settled(ledger, dispatcher);
  assert.deepEqual(
    seen,
    [1, 2, 3].map((attempt) => ['e1', attempt, 't', 'c']),
  );
  const [message] = await ledger.list({});
  assert.equal(message?.attempts, 2);
  assert.equal(message.lastError, 'HTTP 503');
});

test('the header idempotencyKey of the mapper overrides the event id', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, { headers: { idempotencyKey: 'invoice-7' } });
  const keys: string[] = [];
  await using dispatcher = await start(ledger, async (_message, { idempotencyKey }) => {
    keys.push(idempotencyKey);
  });
  await settled(ledger, dispatcher);
  assert.deepEqual(keys, ['invoice-7']);
});

test('a message that fails too often is dead, with its error, and is reported', async () => {
  const ledger = openMemory().outbox;
  const reported: unknown[] = [];
  const [id] = await enqueued(ledger, { maxAttempts: 3 });
  const deliver = async (): Promise<never> => {
    throw new Error('fetch failed', { cause: new Error('ECONNREFUSED') });
  };
  const onDead: OutboxDispatcherOptions['onDead'] = (message, error) => {
    reported.push([message.id, error]);
    throw new Error('no listener');
  };
  await using dispatcher = await start(ledger, deliver, { onDead });
  await settled(ledger, dispatcher);
  assert.deepEqual(reported, [[id, 'fetch failed: ECONNREFUSED']]);
  const [message] = await ledger.list({ status: 'DEAD' });
  assert.equal(message?.attempts, 3);
});

test('a Terminal error makes the message dead, and RetryAfter sets the time of the retry', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, { sourceEventId: 'gone' }, { sourceEventId: 'busy' });
  await using dispatcher = await start(
    ledger,
    async ({ sourceEventId }) => {
      if (sourceEventId === 'gone') throw new Terminal('HTTP 410');
      throw new RetryAfter(7_000, 'HTTP 429');
    },
    { clock },
  );
  await eventually('both were tried', async () => {
    assert.equal(dispatcher.state, 'started');
    const { DEAD, FAILED } = await ledger.counts();
    return DEAD === 1 && FAILED === 1;
  });
  const [failed] = await ledger.list({ status: 'FAILED' });
  assert.equal(failed?.dueAt.getTime(), clock.now() + 7_000);
});

test('concurrent attempts never exceed the limit', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 60 }, () => ({})));
  let now = 0;
  let most = 0;
  await using dispatcher = await start(
    ledger,
    async () => {
      now += 1;
      most = Math.max(most, now);
      await new Promise(setImmediate);
      now -= 1;
    },
    { concurrency: 4, batchSize: 10 },
  );
  await settled(ledger, dispatcher);
  assert.equal(most, 4);
});

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('claims the next batch while one is being sent, and settles in batches', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 100 }, () => ({})));
  const claims: number[] = [];
  const settles: number[] = [];
  let sent = 0;
  const watched: OutboxLedger = {
    ...ledger,
    settle(outcomes) {
      settles.push(outcomes.length);
      return ledger.settle(outcomes);
    },
    claimDueBatch(...request) {
      claims.push(sent);
      return ledger.claimDueBatch(...request);
    },
  };
  // Waits as many turns as a claim of this ledger takes: a batch is not sent before the next claim returns.
  const deliver = async () => {
    for (let step = 0; step < 5; step += 1) await Promise.resolve();
    sent += 1;
  };
  await using dispatcher = await start(watched, deliver, { batchSize: 20, concurrency: 5 });
  await dispatcher.whenIdle();
  assert.equal(sent, 100);
  assert.ok(settles.length <= 20, settles.join());
  // The second claim does not wait for the first batch.
  assert.ok((claims[1] ?? 100) <= 5, claims.join());
});

test('in a backlog, claims continue while outcomes are stored, up to a limit', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 400 }, () => ({})));
  const disk = Promise.withResolvers<void>();
  let sent = 0;
  let settles = 0;
  const slow: OutboxLedger = {
    ...ledger,
    async settle(outcomes) {
      settles += 1;
      await disk.promise;
      return ledger.settle(outcomes);
    },
    async claimDueBatch(...request) {
      // So that sending waits for claims.
      await nextTurn();
      return ledger.claimDueBatch(...request);
    },
  };
  const deliver = async () => void (sent += 1);
  await using dispatcher = await start(slow, deliver, { batchSize: 20, concurrency: 5 });
  await eventually('claims have gone on', async () => sent >= 80);
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
  const settlesAtOnce = settles;
  const unsettled = sent - (await ledger.counts()).SENT;
  disk.resolve();
  assert.equal(settlesAtOnce, 1);
  assert.ok(unsettled >= 80 && unsettled <= 140, `${unsettled} were sent and not written down`);
  await settled(ledger, dispatcher);
  assert.equal(sent, 400);
});

test('the messages of a claim that returns after the stop are released', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 10 }, () => ({})));
  const claimed = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const slow: OutboxLedger = {
    ...ledger,
    async claimDueBatch(...request) {
      const messages = await ledger.claimDueBatch(...request);
      claimed.resolve();
      await answered.promise;
      return messages;
    },
  };
  let sent = 0;
  const dispatcher = await start(slow, async () => void (sent += 1));
  await claimed.promise;
  const stopped = dispatcher.stop();
  answered.resolve();
  await stopped;
  assert.equal(sent, 0);
  assert.deepEqual(await ledger.counts(), {
    PENDING: 10,
    CLAIMED: 0,
    SENT: 0,
    FAILED: 0,
    DEAD: 0,
    DISCARDED: 0,
  });
});

test('failed calls of the ledger are repeated, and reported once at the start and once at the end of an outage', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 300 }, () => ({})));
  const sent: string[] = [];
  let failures = 0;
  let settles = 0;
  const flaky: OutboxLedger = {
    ...ledger,
    async settle(outcomes) {
      settles += 1;
      if (settles > 2 && settles <= 5) {
        failures += 1;
        throw new MillraceError('STORE_UNAVAILABLE', 'away');
      }
      return ledger.settle(outcomes);
    },
    async claimDueBatch(...request) {
      if (failures > 0 && failures < 3) throw new MillraceError('STORE_UNAVAILABLE', 'away');
      return ledger.claimDueBatch(...request);
    },
  };
  const phases: unknown[] = [];
  const log = (fields: object): void => {
    if ('operation' in fields && 'phase' in fields && fields.operation === 'OUTBOX_CLAIM') {
      phases.push(fields.phase);
    }
  };
  const observer = { log: { debug: () => undefined, info: log, warn: log, error: log } };
  const deliver: OutboxDispatcherOptions['deliver'] = async ({ id }) => void sent.push(id);
  const more = { batchSize: 20, concurrency: 5, observer };
  await using dispatcher = await start(flaky, deliver, more);
  await dispatcher.whenIdle();
  assert.equal(failures, 3);
  assert.deepEqual(phases, ['ERROR', 'RESTORED']);
  assert.equal(new Set(sent).size, 300);
  assert.equal(sent.length, 300);
  assert.equal((await ledger.counts()).SENT, 300);
});

test('claims only what is sent within moments, so that newer messages are not delayed', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, ...Array.from({ length: 1_000 }, () => ({ tenantId: 'noisy' })));
  const deliver = () => clock.sleep(100);
  const more = { clock, concurrency: 10, batchSize: 500 };
  const dispatcher = await start(ledger, deliver, more);
  let most = 0;
  for (let round = 0; round < 20; round += 1) {
    await clock.advance(50);
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    if (round >= 10) most = Math.max(most, (await ledger.counts()).CLAIMED);
  }
  const { inFlight } = dispatcher;
  const stopped = dispatcher.stop();
  await clock.advance(100);
  await stopped;
  assert.equal(inFlight, 10);
  assert.ok(most <= 25, `${most} were claimed`);
});

test('messages of one key go out in order while others overtake them', async () => {
  const ledger = openMemory().outbox;
  await ledger.enqueueMany(
    Array.from({ length: 100 }, (_, at) =>
      newMessage({ orderingKey: `k${at % 5}`, payload: { at } }),
    ),
  );
  const seen = new Map<string, number[]>();
  await using dispatcher = await start(ledger, async ({ orderingKey = '', payload, attempts }) => {
    await new Promise(setImmediate);
    if (Number(payload['at']) % 10 === 3 && attempts === 0) return { kind: 'retry', error: 'no' };
    seen.set(orderingKey, [...(seen.get(orderingKey) ?? []), Number(payload['at'])]);
    return { kind: 'sent' };
  });
  await settled(ledger, dispatcher);
  for (const order of seen.values())
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
  assert.equal([...seen.values()].flat().length, 100);
});

test('stopping a dispatcher lets running attempts finish and releases the other messages', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 20 }, () => ({})));
  const gate = Promise.withResolvers<void>();
  const dispatcher = await start(ledger, () => gate.promise, { concurrency: 3 });
  await eventually('three are out', async () => dispatcher.inFlight === 3);
  const stopped = dispatcher.stop();
  gate.resolve();
  await stopped;
  assert.deepEqual(await ledger.counts(), {
    PENDING: 17,
    CLAIMED: 0,
    SENT: 3,
    FAILED: 0,
    DEAD: 0,
    DISCARDED: 0,
  });
});

test('an attempt that outlasts the drain time is cancelled and not counted', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, {});
  const dispatcher = await start(ledger, () => never, { drainMs: 1 });
  await eventually('it is out', async () => dispatcher.inFlight === 1);
  await dispatcher.stop();
  assert.deepEqual(await ledger.counts(), {
    PENDING: 1,
    CLAIMED: 0,
    SENT: 0,
    FAILED: 0,
    DEAD: 0,
    DISCARDED: 0,
  });
});

test('the shorter of the time limits of dispatcher and deliver function applies', async () => {
  for (const [dispatcherMs, deliverMs] of [
    [20_000, 5],
    [5, 20_000],
  ] as const) {
    const ledger = openMemory().outbox;
    await enqueued(ledger, { maxAttempts: 1 });
    const deliver: Deliver = (_message, { limit }) => {
      limit?.(deliverMs);
      return never;
    };
    await using dispatcher = await start(ledger, deliver, { timeoutMs: dispatcherMs });
    await settled(ledger, dispatcher);
    const [message] = await ledger.list({ status: 'DEAD' });
    assert.equal(message?.lastError, 'no response within 5 ms');
  }
});

test('an attempt that exceeds its time limit has failed, whether it obeys its signal or not', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, { maxAttempts: 1 });
  await using dispatcher = await start(ledger, () => never, { timeoutMs: 5 });
  await settled(ledger, dispatcher);
  const [message] = await ledger.list({ status: 'DEAD' });
  assert.equal(message?.lastError, 'no response within 5 ms');
});

test('a message whose lease expired before it was started is not sent', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, {});
  let claims = 0;
  let sent = 0;
  const slow: OutboxLedger = {
    ...ledger,
    async claimDueBatch(...request) {
      const messages = await ledger.claimDueBatch(...request);
      // The process was suspended for a while before the result arrived.
      claims += 1;
      if (claims === 1) await clock.advance(1_000);
      return messages;
    },
  };
  const deliver = async () => void (sent += 1);
  await using dispatcher = await start(slow, deliver, { clock, leaseMs: 1_000 });
  await settled(ledger, dispatcher);
  assert.equal(sent, 1);
  assert.ok(claims > 1);
  const [message] = await ledger.list({});
  assert.equal(message?.attempts, 0);
});

test('an attempt may last longer than its lease, which is renewed; a fast one costs no renewal', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  const [slow = ''] = await enqueued(ledger, { orderingKey: 'slow' }, {});
  const extended: string[] = [];
  const watched: OutboxLedger = {
    ...ledger,
    extend(claims, options) {
      extended.push(...claims.map(({ id }) => id));
      return ledger.extend(claims, options);
    },
  };
  const gate = Promise.withResolvers<void>();
  let sent = 0;
  const deliver: Deliver = async ({ orderingKey }) => {
    sent += 1;
    if (orderingKey !== undefined) await gate.promise;
  };
  await using dispatcher = await start(watched, deliver, { clock });
  await eventually('one is sent', async () => (await ledger.counts()).SENT === 1);
  await clock.advance(29_000);
  assert.equal(dispatcher.inFlight, 1);
  assert.ok(extended.length >= 3 && extended.every((id) => id === slow), extended.join());
  assert.deepEqual(await ledger.claimDueBatch('other', 10), []);
  gate.resolve();
  await settled(ledger, dispatcher);
  assert.equal(sent, 2);
});

test('a killed process frees its messages within 15 seconds', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, {});
  const leases: (number | undefined)[] = [];
  const frozen: OutboxLedger = {
    ...ledger,
    claimDueBatch(workerId, limit, options) {
      leases.push(options?.leaseMs);
      return ledger.claimDueBatch(workerId, limit, options);
    },
    extend: () => Promise.reject(new MillraceError('STORE_UNAVAILABLE', 'killed')),
    settle: () => Promise.reject(new MillraceError('STORE_UNAVAILABLE', 'killed')),
  };
  await using killed = await start(frozen, () => never, { clock, drainMs: 1 });
  await eventually('it is out', async () => killed.inFlight === 1);
  assert.equal(leases[0], 15_000);
  await clock.advance(14_999);
  assert.deepEqual(await ledger.claimDueBatch('next', 1), []);
  await clock.advance(1);
  assert.equal((await ledger.claimDueBatch('next', 1)).length, 1);
  const stopped = killed.stop();
  await clock.advance(1);
  await stopped;
});

test('an attempt whose claim was taken over is cancelled, and its outcome is not stored', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  const [id = ''] = await enqueued(ledger, {});
  const tokens: string[] = [];
  const signals: AbortSignal[] = [];
  const outcomes: unknown[] = [];
  const counted: string[] = [];
  const watched: OutboxLedger = {
    ...ledger,
    async claimDueBatch(...args) {
      const claimed = await ledger.claimDueBatch(...args);
      tokens.push(...claimed.map(({ token }) => token));
      return claimed;
    },
    settle(given) {
      outcomes.push(...given);
      return ledger.settle(given);
    },
  };
  const observer = { count: (name: string) => void counted.push(name) };
  const deliver: Deliver = async (_message, { signal }) => {
    signals.push(signal);
    await never;
  };
  await using dispatcher = await start(watched, deliver, { clock, observer });
  await eventually('it is out', async () => dispatcher.inFlight === 1);
  const [message] = await ledger.list({});
  // The next owner claims it while this process cannot renew: here, the token changes.
  const [other] = await ledger.renew([{ id, token: tokens[0] ?? '' }], { workerId: 'other' });
  assert.equal(typeof other, 'object');
  assert.equal(message?.lockedBy?.startsWith('outbox-'), true);
  await clock.advance(7_500);
  await eventually('it was cancelled', async () => dispatcher.inFlight === 0);
  assert.equal(signals.length, 1);
  assert.ok(hasCode(signals[0]?.reason, 'LEASE_LOST'));
  assert.deepEqual(outcomes, []);
  assert.ok(counted.includes('outbox_stale_total'));
  assert.equal((await ledger.find(id))?.lockedBy, 'other');
});

test('during an outage an attempt is cancelled before its lease ends', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, {});
  const away: OutboxLedger = {
    ...ledger,
    extend: () => Promise.reject(new MillraceError('STORE_UNAVAILABLE', 'away')),
  };
  let sent = 0;
  const deliver: Deliver = async () => {
    sent += 1;
    if (sent === 1) await never;
  };
  await using dispatcher = await start(away, deliver, { clock, tickIntervalMs: 1_000 });
  await eventually('it is out', async () => dispatcher.inFlight === 1);
  await clock.advance(15_000 - 1);
  assert.equal(dispatcher.inFlight, 0);
  assert.equal((await ledger.counts()).CLAIMED, 1);
  await clock.advance(1_000);
  await settled(ledger, dispatcher);
  assert.equal(sent, 2);
});

test('outcomes are kept until they can be stored', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, {}, {}, {});
  let calls = 0;
  let sent = 0;
  const flaky: OutboxLedger = {
    ...ledger,
    async settle(outcomes) {
      calls += 1;
      if (calls <= 2) throw new MillraceError('STORE_UNAVAILABLE', 'away');
      return ledger.settle(outcomes);
    },
  };
  await using dispatcher = await start(flaky, async () => void (sent += 1));
  await settled(ledger, dispatcher);
  assert.equal(sent, 3);
  assert.equal((await ledger.counts()).SENT, 3);
});

test('a message that killed every process that started it is dead without being sent', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, { maxAttempts: 2 });
  for (const worker of ['dies', 'dies-too']) {
    await ledger.claimDueBatch(worker, 1, { leaseMs: 1 });
    await clock.advance(1);
  }
  let sent = 0;
  await using dispatcher = await start(ledger, async () => void (sent += 1), { clock });
  await settled(ledger, dispatcher);
  assert.equal(sent, 0);
  const [message] = await ledger.list({ status: 'DEAD' });
  assert.match(message?.lastError ?? '', /started 3 times without an outcome/);
});

test('counts and times have the names of the document, and logs contain no payload', async () => {
  const ledger = openMemory().outbox;
  const names = new Set<string>();
  const logs: object[] = [];
  const log = (fields: object): void => void logs.push(fields);
  const observer = {
    count: (name: string) => void names.add(name),
    record: (name: string) => void names.add(name),
    log: { debug: log, info: log, warn: log, error: log },
  };
  await enqueued(
    ledger,
    { sourceEventId: 'ok', tenantId: 't', correlationId: 'c', payload: { secret: 'hush' } },
    { sourceEventId: 'bad', maxAttempts: 2 },
  );
  const deliver: OutboxDispatcherOptions['deliver'] = async ({ sourceEventId }) =>
    sourceEventId === 'ok' ? { kind: 'sent' } : { kind: 'retry', error: 'no' };
  await using dispatcher = await start(ledger, deliver, { observer });
  await settled(ledger, dispatcher);
  for (const name of ['claimed', 'sent', 'failed', 'dead'])
    assert.ok(names.has(`outbox_${name}_total`));
  assert.ok(names.has('outbox_claim_duration_ms') && names.has('outbox_delivery_duration_ms'));
  const sent = logs.find((each) => 'phase' in each && each.phase === 'SENT') ?? {};
  const present = Object.entries(sent).filter(([, value]) => value !== undefined);
  assert.deepEqual(present.map(([name]) => name).toSorted(), [
    'correlationId',
    'integrationType',
    'operation',
    'outboxId',
    'phase',
    'source',
    'tenantId',
  ]);
  assert.doesNotMatch(JSON.stringify(logs), /hush/);
});

test('is idle when no message is due and all dead letters are reported', async () => {
  const ledger = openMemory().outbox;
  const doomed = Array.from({ length: 200 }, (_, at) => ({ sourceEventId: `dead-${at}` }));
  await enqueued(ledger, ...doomed, {
    sourceEventId: 'later',
    dueAt: new Date(Date.now() + 3_600_000),
  });
  let reported = 0;
  const deliver: OutboxDispatcherOptions['deliver'] = async ({ sourceEventId }) =>
    sourceEventId.startsWith('dead') ? { kind: 'dead', error: 'no' } : { kind: 'sent' };
  const onDead = async ({ sourceEventId }: { readonly sourceEventId: string }): Promise<void> => {
    await ledger.enqueue(newMessage({ sourceEventId: `reported-${sourceEventId}` }));
    reported += 1;
  };
  await using dispatcher = await start(ledger, deliver, { onDead, tickIntervalMs: 1 });
  await dispatcher.whenIdle();
  assert.equal(reported, 200);
  await rejectsWith(() => dispatcher.whenIdle(AbortSignal.abort()), 'ABORTED');
  const { SENT, DEAD, PENDING } = await ledger.counts();
  assert.deepEqual({ SENT, DEAD, PENDING }, { SENT: 200, DEAD: 200, PENDING: 1 });
});

test('a poll during which a dead message is reported is not the last one', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, { sourceEventId: 'dead' });
  const looked = Promise.withResolvers<void>();
  const reported = Promise.withResolvers<void>();
  let isDead = false;
  const slow: OutboxLedger = {
    ...ledger,
    async claimDueBatch(...request) {
      const isReporting = isDead;
      const messages = await ledger.claimDueBatch(...request);
      // The first poll after the dead message was stored: its result is older than the report.
      if (isReporting) {
        looked.resolve();
        await reported.promise;
      }
      return messages;
    },
  };
  const deliver: OutboxDispatcherOptions['deliver'] = async ({ sourceEventId }) =>
    sourceEventId === 'dead' ? { kind: 'dead', error: 'no' } : { kind: 'sent' };
  const onDead = async (): Promise<void> => {
    isDead = true;
    await looked.promise;
    await ledger.enqueue(newMessage({ sourceEventId: 'reported' }));
    setImmediate(reported.resolve);
  };
  await using dispatcher = await start(slow, deliver, { onDead, tickIntervalMs: 1 });
  await dispatcher.whenIdle();
  assert.deepEqual((await ledger.counts()).SENT, 1);
});

test('stopping a dispatcher waits for running onDead calls', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, {});
  const release = Promise.withResolvers<void>();
  const reported = Promise.withResolvers<void>();
  const deliver = async () => ({ kind: 'dead', error: 'no' }) as const;
  const dispatcher = await start(ledger, deliver, {
    async onDead() {
      reported.resolve();
      await release.promise;
    },
  });
  await reported.promise;
  let hasStopped = false;
  const stopping = dispatcher.stop().then(() => (hasStopped = true));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(hasStopped, false);
  release.resolve();
  await stopping;
});

test('invalid settings are rejected', async () => {
  const ledger = openMemory().outbox;
  const deliver = async (): Promise<void> => undefined;
  for (const more of [{ concurrency: 0 }, { leaseMs: 0 }, { timeoutMs: 0 }, { batchSize: 1.5 }]) {
    await rejectsWith(
      async () => createOutboxDispatcher({ ledger, deliver, ...more }),
      'OUTBOX_INVALID',
    );
  }
});

test('starts and stops in any order leave no claim and no timer', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 500 }, () => ({})));
  await stressLifecycle({
    rounds: 50,
    create: () =>
      createOutboxDispatcher({ ledger, deliver: async () => undefined, concurrency: 2 }),
    assertReleased: async () => assert.equal((await ledger.counts()).CLAIMED, 0),
  });
});
