import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { RetryAfter, Snooze, Terminal } from '../foundation/handler-outcome.ts';
import { cleanText } from '../foundation/error-text.ts';
import { errorText, errorTextLimits, outcomeOfError } from './delivery-outcome.ts';

test('Terminal, RetryAfter and Snooze become outcomes', () => {
  const outcome = (error: Error) => {
    const { facts, ...rest } = outcomeOfError(error);
    assert.equal(facts?.name, error.name);
    assert.match(facts?.stack ?? '', /delivery-outcome\.test\.ts/);
    return rest;
  };
  assert.deepEqual(outcome(new Terminal('no')), { kind: 'dead', error: 'no' });
  const later = { kind: 'retry', error: 'busy', afterMs: 50 };
  assert.deepEqual(outcome(new RetryAfter(50, 'busy')), later);
  const snooze = outcome(new Snooze(50, 'busy'));
  assert.deepEqual(snooze, { ...later, attempted: false });
  assert.deepEqual(outcome(new Error('broken')), { kind: 'retry', error: 'broken' });
});

test('a non-retryable error is dead, unless another process can send the message', () => {
  assert.equal(outcomeOfError(new MillraceError('PAYLOAD_NOT_JSON', 'no')).kind, 'dead');
  assert.equal(outcomeOfError(new MillraceError('STORE_UNAVAILABLE', 'away')).kind, 'retry');
  for (const code of ['ABORTED', 'STORE_CLOSED', 'DRIVER_MISSING'] as const) {
    assert.equal(outcomeOfError(new MillraceError(code, 'over')).kind, 'retry', code);
  }
});

test('the text of an error contains its causes, each once', () => {
  const error = new Error('fetch failed', { cause: new Error('connect ECONNREFUSED') });
  assert.equal(errorText(error), 'fetch failed: connect ECONNREFUSED');
  const circle = new Error('round');
  circle.cause = circle;
  assert.equal(errorText(circle), 'round');
  assert.equal(errorText(new AggregateError([new Error('a'), new Error('b')])), 'a, b');
  assert.equal(errorText('plain'), 'plain');
  assert.equal(errorText({ code: 7 }), '{"code":7}');
  assert.equal(errorText(undefined), 'unknown error');
  const self: { self?: object } = {};
  self.self = self;
  assert.equal(errorText(self), 'object');
});

test('the text of an error fits into any database column', () => {
  assert.equal(errorText(new Error('x'.repeat(9_000))).length, errorTextLimits.charsMax);
  assert.equal(cleanText('a\u0000b\u001bc\td\n', 100), 'a�b�c\td\n');
  // Truncated in the middle of a surrogate pair.
  assert.equal(cleanText('ab🌍', 3), 'ab�');
});
