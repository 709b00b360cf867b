import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDueTimes } from './due-times.ts';

test('reports each postponed message at its due time, also when another one was due before', () => {
  const times = createDueTimes();
  const claim = { id: 'm1', token: '1' };
  const postpone = (untilMs: number): void =>
    times.add({ kind: 'released', claim, dueAt: new Date(untilMs) });
  assert.equal(times.nextInMs(0), Number.POSITIVE_INFINITY);
  times.add({ kind: 'sent', claim });
  times.add({ kind: 'released', claim });
  assert.equal(times.nextInMs(0), Number.POSITIVE_INFINITY);
  for (const untilMs of [30, 10, 20]) postpone(untilMs);
  times.add({ kind: 'failed', claim, error: 'no', nextDueAt: new Date(10) });
  assert.equal(times.nextInMs(5), 5);
  assert.equal(times.nextInMs(10), 0);
  assert.equal(times.nextInMs(10), 10);
  assert.equal(times.nextInMs(25), -5);
  assert.equal(times.nextInMs(26), 4);
  // Only the earliest due times are remembered.
  for (let untilMs = 1_000; untilMs > 100; untilMs -= 1) postpone(untilMs);
  const reported = [];
  for (let nowMs = 30; Number.isFinite(times.nextInMs(nowMs)); nowMs += 1) reported.push(nowMs);
  assert.ok(reported.length > 60 && reported.length < 170);
});
