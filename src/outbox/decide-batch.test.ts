import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideBatch, sendable } from './decide-batch.ts';
import type { DeliveryResult } from './decide-delivery.ts';
import { attemptBatch, deliverEach } from './deliver-batch.ts';
import { memoryOutboxLedger } from './memory-outbox-ledger.ts';
import { newMessage, rejectsWith } from './ledger-fixture.conformance.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import type { ClaimedMessage } from './outbox-message.ts';
import { createOutboxStreamRelay } from './outbox-stream-relay.ts';
import type { LaneBatch, LaneMessage } from './outbox-streams.ts';

const clock = fakeClock();
const claim = { integrationType: 'kafka:a', lane: 1, epoch: 1 };
const context = { nowMs: 1_000, failures: 0, random: 0 };
const sent: DeliveryResult = { kind: 'sent' };
const retry: DeliveryResult = { kind: 'retry', error: 'no' };
const untried: DeliveryResult = { kind: 'retry', error: 'no', attempted: false, afterMs: 700 };

async function batchOf(...keys: readonly (string | undefined)[]): Promise<LaneBatch> {
  const ledger = memoryOutboxLedger({ clock });
  await ledger.enqueueMany(
    keys.map((key) => newMessage(key === undefined ? {} : { orderingKey: key })),
  );
  const messages = await ledger.list({});
  const items = messages.map((message, at): LaneMessage => {
    const claimed: ClaimedMessage = { ...message, token: '1.1', starts: 1 };
    return { message: claimed, position: at + 1, isParked: false, mustWait: false };
  });
  return { claim, number: 7, items };
}

function resultsOf(
  { items }: LaneBatch,
  ...results: readonly DeliveryResult[]
): ReadonlyMap<LaneMessage, DeliveryResult> {
  return new Map(items.map((item, at) => [item, results[at] ?? sent]));
}

test('a batch that was sent moves the cursor, and nothing else', async () => {
  const batch = await batchOf('a', 'b', undefined);
  const { outcome, holdMs, failures } = decideBatch(batch, resultsOf(batch), context);
  assert.deepEqual(outcome, { claim, number: 7, upTo: 3, changes: [] });
  assert.deepEqual([holdMs, failures], [0, 0]);
});

test('a failed message is put aside with those of its key behind it, and the cursor goes past them', async () => {
  const batch = await batchOf('a', 'b', 'a', undefined);
  const { outcome } = decideBatch(batch, resultsOf(batch, retry, sent, retry, sent), context);
  assert.equal(outcome.upTo, 4);
  assert.deepEqual(outcome.changes, [
    { kind: 'failed', position: 1, error: 'no', nextDueAt: new Date(61_000) },
    { kind: 'waits', position: 3, dueAt: undefined },
  ]);
});

test('what was sent behind a failure is sent, and not sent again', async () => {
  const batch = await batchOf('a', 'a');
  const { outcome } = decideBatch(batch, resultsOf(batch, retry, sent), context);
  assert.deepEqual(
    outcome.changes.map(({ kind, position }) => [kind, position]),
    [['failed', 1]],
  );
});

test('a batch of which nothing was sent costs no attempt: the lane holds, longer each time', async () => {
  const batch = await batchOf('a', 'b');
  const results = resultsOf(batch, retry, retry);
  let failures = 0;
  let lastMs = 0;
  for (let time = 0; time < 12; time += 1) {
    const decision = decideBatch(batch, results, { ...context, failures });
    assert.deepEqual(decision.outcome, { claim, number: 7, changes: [] });
    assert.ok(decision.holdMs >= lastMs);
    lastMs = decision.holdMs;
    failures = decision.failures;
  }
  assert.equal(failures, 12);
  assert.equal(lastMs, 30_000);
});

test('a single message that fails is put aside: it may be the message, not the destination', async () => {
  const batch = await batchOf('a');
  const { outcome, holdMs, failures } = decideBatch(batch, resultsOf(batch, retry), context);
  assert.equal(outcome.upTo, 1);
  assert.equal(outcome.changes[0]?.kind, 'failed');
  assert.ok(holdMs > 0);
  assert.equal(failures, 1);
});

test('what fails again after it was put aside does not hold the lane', async () => {
  const { items, ...rest } = await batchOf('a', 'b');
  const batch = { ...rest, items: items.map((item) => ({ ...item, isParked: true })) };
  for (const result of [retry, untried]) {
    const decision = decideBatch(batch, resultsOf(batch, result, result), {
      ...context,
      failures: 2,
    });
    assert.equal(decision.outcome.changes.length, 2);
    assert.equal(decision.outcome.upTo, undefined);
    assert.deepEqual([decision.holdMs, decision.failures], [0, 2]);
  }
});

test('what nobody tried is held for as long as it was asked for', async () => {
  const batch = await batchOf('a', undefined);
  const all = decideBatch(batch, resultsOf(batch, untried, untried), context);
  assert.deepEqual(all, { outcome: { claim, number: 7, changes: [] }, failures: 0, holdMs: 700 });
  const some = decideBatch(batch, resultsOf(batch, untried, sent), context);
  assert.deepEqual(some.outcome.changes, [{ kind: 'waits', position: 1, dueAt: new Date(1_700) }]);
});

test('behind one that must wait, nothing of its key is sent', async () => {
  const { items } = await batchOf('a', 'b', 'a', undefined);
  const waiting = items.map((item, at) => ({ ...item, mustWait: at === 0 }));
  assert.deepEqual(
    sendable(waiting).map(({ position }) => position),
    [2, 4],
  );
});

const attempt = {
  integrationType: 'kafka:a',
  clock,
  timeoutMs: 1_000,
  stopping: new AbortController().signal,
};

test('a batch that throws, or answers with too little, was sent to nobody', async () => {
  const messages = (await batchOf('a', 'b')).items.map(({ message }) => message);
  for (const deliverBatch of [
    async () => Promise.reject(new Error('no broker')),
    async () => [sent],
    async () => [sent, undefined as never],
  ]) {
    const results = await attemptBatch(messages, { ...attempt, deliverBatch });
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ['retry', 'retry'],
    );
  }
  const nothing = await attemptBatch(messages, { ...attempt, deliverBatch: async () => undefined });
  assert.deepEqual(nothing, [sent, sent]);
});

test('a batch that does not come back is over when its time is', async () => {
  const messages = (await batchOf('a')).items.map(({ message }) => message);
  let signal: AbortSignal | undefined;
  const attempting = attemptBatch(messages, {
    ...attempt,
    deliverBatch: (_messages, given) => {
      signal = given.signal;
      return new Promise(() => undefined);
    },
  });
  await clock.advance(1_000);
  assert.equal((await attempting)[0]?.kind, 'retry');
  assert.equal(signal?.aborted, true);
});

test('single sends of a batch keep the order of each key, and stop it at a failure', async () => {
  const messages = (await batchOf('a', 'b', 'a', 'a', 'b')).items.map(({ message }) => message);
  const seen: number[] = [];
  const deliverBatch = deliverEach(async (message) => {
    seen.push(messages.indexOf(message));
    await Promise.resolve();
    if (message === messages[2]) throw new Error('no');
  });
  const results = await attemptBatch(messages, { ...attempt, deliverBatch });
  assert.deepEqual(
    results.map((result) => ('attempted' in result ? 'behind' : result.kind)),
    ['sent', 'sent', 'retry', 'behind', 'sent'],
  );
  assert.deepEqual(
    seen.filter((at) => at !== 1 && at !== 4),
    [0, 2],
  );
});

test('a ledger without stream mode says so', async () => {
  const { streams, capabilities } = memoryOutboxLedger();
  assert.equal(capabilities.streamMode, false);
  const error = await rejectsWith(() => streams.declare('kafka:a'), 'NOT_SUPPORTED');
  assert.equal(error.details['capability'], 'streamMode');
  await rejectsWith(() => streams.declared(), 'NOT_SUPPORTED');
  const relay = createOutboxStreamRelay({
    ledger: memoryOutboxLedger(),
    integrationTypes: ['kafka:a'],
    deliverBatch: async () => undefined,
  });
  await rejectsWith(() => relay.start(), 'NOT_SUPPORTED');
});

test('a relay without destinations, or whose sends outlive its leases, is refused', () => {
  const ledger = memoryOutboxLedger();
  const deliverBatch = async (): Promise<void> => undefined;
  for (const options of [
    { integrationTypes: [] },
    { integrationTypes: ['kafka:a'], leaseMs: 100, timeoutMs: 100 },
    { integrationTypes: ['kafka:a'], batchBytes: 0 },
  ]) {
    assert.throws(() => createOutboxStreamRelay({ ledger, deliverBatch, ...options }), {
      code: 'OUTBOX_INVALID',
    });
  }
});
