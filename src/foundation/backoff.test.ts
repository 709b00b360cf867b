import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { backoffMs, eventFlowBackoff, nextAttempt, outboxBackoff } from './backoff.ts';

test('event handlers wait 1, 2, 4, 8 and 16 seconds', () => {
  const waits = [1, 2, 3, 4, 5].map((failures) => backoffMs(eventFlowBackoff, failures));
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000]);
});

test('event handlers stop after the sixth attempt', () => {
  assert.equal(nextAttempt(eventFlowBackoff, { failures: 5, nowMs: 0 }).kind, 'retry');
  assert.deepEqual(nextAttempt(eventFlowBackoff, { failures: 6, nowMs: 0 }), {
    kind: 'give-up',
    attempts: 6,
  });
});

test('the outbox doubles from one minute to fifteen and adds at most ten seconds', () => {
  const least = [1, 2, 3, 4, 5, 9].map((failures) => backoffMs(outboxBackoff, failures, 0));
  assert.deepEqual(least, [60_000, 120_000, 240_000, 480_000, 900_000, 900_000]);
  assert.equal(backoffMs(outboxBackoff, 1, 0.999_999_999), 70_000);
});

test('a wait is never below the first, never above cap and jitter, for any number of failures', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, random) => {
        const wait = backoffMs(outboxBackoff, failures, random);
        assert.ok(Number.isInteger(wait));
        assert.ok(wait >= outboxBackoff.initialMs);
        assert.ok(wait <= outboxBackoff.capMs + outboxBackoff.jitterMs);
      },
    ),
  );
});

test('the next attempt has a number and a time', () => {
  assert.deepEqual(nextAttempt(eventFlowBackoff, { failures: 2, nowMs: 5_000 }), {
    kind: 'retry',
    attempt: 3,
    atMs: 7_000,
  });
});
