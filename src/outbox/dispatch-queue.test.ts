import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDispatchQueue } from './dispatch-queue.ts';
import { claimOne, enqueued } from '../testing/conformance/outbox/fixture.ts';
import { memoryOutboxLedger } from './memory-outbox-ledger.ts';

test('reports each postponed message at its due time, also when another one was due before', async () => {
  const ledger = memoryOutboxLedger();
  await enqueued(ledger, {});
  const message = await claimOne(ledger);
  const queue = createDispatchQueue();
  const postpone = (untilMs: number): void =>
    queue.settle(message, { kind: 'released', claim: message, dueAt: new Date(untilMs) });
  assert.equal(queue.dueInMs(0), Number.POSITIVE_INFINITY);
  for (const untilMs of [30, 10, 20, 10]) postpone(untilMs);
  assert.equal(queue.dueInMs(5), 5);
  assert.equal(queue.dueInMs(10), 0);
  assert.equal(queue.dueInMs(10), 10);
  assert.equal(queue.dueInMs(25), -5);
  assert.equal(queue.dueInMs(26), 4);
  // Only the earliest due times are remembered.
  for (let untilMs = 1_000; untilMs > 100; untilMs -= 1) postpone(untilMs);
  const reported = [];
  for (let nowMs = 30; Number.isFinite(queue.dueInMs(nowMs)); nowMs += 1) reported.push(nowMs);
  assert.ok(reported.length > 60 && reported.length < 170);
});
