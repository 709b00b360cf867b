import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventFlowBackoff } from '../../foundation/backoff.ts';
import { MillraceError } from '../../foundation/error.ts';
import { decideRetry } from './decide-retry.ts';
import { RetryAfter, Snooze, Terminal } from '../handler-outcome.ts';

const nowMs = 1_000_000;
const decide = (error: unknown, failures: number) =>
  decideRetry(eventFlowBackoff, { error, failures, nowMs });

test('a failing event is tried again after 1, 2, 4, 8 and 16 s, then it is a dead letter', () => {
  const waits = [0, 1, 2, 3, 4].map((failures) => {
    const decision = decide(new Error('away'), failures);
    return decision.kind === 'retry' ? decision.atMs - nowMs : undefined;
  });
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000]);
  assert.deepEqual(decide(new Error('away'), 5), { kind: 'dead-letter', failures: 6 });
});

test('a terminal failure is a dead letter at once', () => {
  assert.deepEqual(decide(new Terminal('no amount'), 0), { kind: 'dead-letter', failures: 1 });
});

test('a handler that says when to come back is believed, but not for ever', () => {
  assert.deepEqual(decide(new RetryAfter(90_000), 0), {
    kind: 'retry',
    atMs: nowMs + 90_000,
    failures: 1,
  });
  assert.equal(decide(new RetryAfter(90_000), 5).kind, 'dead-letter');
});

test('snoozing is no failure: it may go on as long as it likes', () => {
  assert.deepEqual(decide(new Snooze(60_000), 5), {
    kind: 'retry',
    atMs: nowMs + 60_000,
    failures: 5,
  });
});

test('a database that is away is no attempt; one that refuses the work is', () => {
  const away = new MillraceError('STORE_UNAVAILABLE', 'cut off');
  assert.deepEqual(decide(away, 5), { kind: 'retry', atMs: nowMs + 1_000, failures: 5 });
  const refused = new MillraceError('STORE_UNAVAILABLE', 'no such table', { retryable: false });
  assert.equal(decide(refused, 5).kind, 'dead-letter');
});

test('outcomes are known by their names, also those of another copy of the package', () => {
  const foreign = Object.assign(new Error('later'), { name: 'Snooze', ms: 5 });
  assert.deepEqual(decide(foreign, 0), { kind: 'retry', atMs: nowMs + 5, failures: 0 });
});

test('what is thrown that is no error follows the policy, too', () => {
  assert.equal(decide('oops', 0).kind, 'retry');
  assert.equal(decide(undefined, 5).kind, 'dead-letter');
});
