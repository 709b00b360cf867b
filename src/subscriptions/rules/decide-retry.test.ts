import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventFlowBackoff } from '../../foundation/backoff.ts';
import { MillraceError } from '../../foundation/error.ts';
import { RetryAfter, Snooze, Terminal } from '../../foundation/handler-outcome.ts';
import { decideRetry } from './decide-retry.ts';

const nowMs = 1_000_000;
const decide = (error: unknown, failures: number) =>
  decideRetry(eventFlowBackoff, { error, failures, nowMs });

test('a failing event is retried after 1, 2, 4, 8 and 16 s, then dead-lettered', () => {
  const waits = [0, 1, 2, 3, 4].map((failures) => {
    const decision = decide(new Error('away'), failures);
    return decision.kind === 'retry' ? decision.atMs - nowMs : undefined;
  });
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000]);
  assert.deepEqual(decide(new Error('away'), 5), { kind: 'dead-letter', failures: 6 });
});

test('a terminal failure is dead-lettered immediately', () => {
  assert.deepEqual(decide(new Terminal('no amount'), 0), { kind: 'dead-letter', failures: 1 });
});

test('RetryAfter sets the time of the retry and counts as an attempt', () => {
  assert.deepEqual(decide(new RetryAfter(90_000), 0), {
    kind: 'retry',
    atMs: nowMs + 90_000,
    failures: 1,
  });
  assert.equal(decide(new RetryAfter(90_000), 5).kind, 'dead-letter');
});

test('Snooze never counts as an attempt', () => {
  assert.deepEqual(decide(new Snooze(60_000), 5), {
    kind: 'retry',
    atMs: nowMs + 60_000,
    failures: 5,
  });
});

test('an unavailable database does not count as an attempt, but a permanent store error does', () => {
  const away = new MillraceError('STORE_UNAVAILABLE', 'cut off');
  assert.deepEqual(decide(away, 5), { kind: 'retry', atMs: nowMs + 1_000, failures: 5 });
  const rejected = new MillraceError('STORE_UNAVAILABLE', 'no such table', { retryable: false });
  assert.equal(decide(rejected, 5).kind, 'dead-letter');
});

test('outcomes are recognized by name, even from another copy of the package', () => {
  const foreign = Object.assign(new Error('later'), { name: 'Snooze', ms: 5 });
  assert.deepEqual(decide(foreign, 0), { kind: 'retry', atMs: nowMs + 5, failures: 0 });
});

test('a thrown value that is not an error follows the policy', () => {
  assert.equal(decide('oops', 0).kind, 'retry');
  assert.equal(decide(undefined, 5).kind, 'dead-letter');
});
