import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDispatchQueue } from './dispatch-queue.ts';
import { claimOne, enqueued } from './ledger-fixture.conformance.ts';
import { memoryOutboxLedger } from './memory-outbox-ledger.ts';

test('each that was put off is looked for at its time, also when another was due before', async () => {
  const ledger = memoryOutboxLedger();
  await enqueued(ledger, {});
  const message = await claimOne(ledger);
  const queue = createDispatchQueue();
  const putOff = (untilMs: number): void =>
    queue.settle(message, { kind: 'released', claim: message, dueAt: new Date(untilMs) });
  assert.equal(queue.dueInMs(0), Number.POSITIVE_INFINITY);
  for (const untilMs of [30, 10, 20, 10]) putOff(untilMs);
  assert.equal(queue.dueInMs(5), 5);
  assert.equal(queue.dueInMs(10), 0);
  assert.equal(queue.dueInMs(10), 10);
  assert.equal(queue.dueInMs(25), -5);
  assert.equal(queue.dueInMs(26), 4);
  // Of very many, the first ones.
  for (let untilMs = 1_000; untilMs > 100; untilMs -= 1) putOff(untilMs);
  const looks = [];
  for (let nowMs = 30; Number.isFinite(queue.dueInMs(nowMs)); nowMs += 1) looks.push(nowMs);
  assert.ok(looks.length > 60 && looks.length < 170);
});
