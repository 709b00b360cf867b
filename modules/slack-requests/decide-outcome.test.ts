import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterLookup, afterPost, failureCodeOf } from './decide-outcome.ts';

const rules = { attempt: 1, attemptsMax: 3, settleMs: 30_000, retryMs: 2_000, random: 0 };

test('a posted message is sent, a permanent error fails', () => {
  const sent = { kind: 'sent', ts: '1.2', channel: 'C1' } as const;
  assert.deepEqual(afterPost(sent, rules), { kind: 'sent', ts: '1.2', channelId: 'C1' });
  assert.deepEqual(afterPost({ kind: 'dead', error: 'channel_not_found' }, rules), {
    kind: 'failed',
    code: 'channel_not_found',
    mayBePosted: false,
  });
});

test('a rate limit pauses the workspace for Retry-After and does not count as an attempt', () => {
  const limited = { kind: 'retry', error: 'ratelimited', afterMs: 7_000, throttled: true } as const;
  const later = { kind: 'later', code: 'ratelimited', mayBePosted: false, counts: false };
  assert.deepEqual(afterPost(limited, { ...rules, attempt: 99 }), {
    ...later,
    delayMs: 7_000,
    pauseMs: 7_000,
  });
  assert.deepEqual(afterPost({ kind: 'retry', error: 'ratelimited' }, rules), {
    ...later,
    delayMs: 30_000,
    pauseMs: 30_000,
  });
});

test('transient errors are retried with backoff and then fail', () => {
  const trouble = { kind: 'retry', error: 'service_unavailable' } as const;
  const later = { kind: 'later', code: 'service_unavailable', mayBePosted: false, counts: true };
  assert.deepEqual(afterPost(trouble, rules), { ...later, delayMs: 2_000 });
  assert.deepEqual(afterPost(trouble, { ...rules, attempt: 2 }), { ...later, delayMs: 4_000 });
  assert.deepEqual(afterPost(trouble, { ...rules, attempt: 3 }), {
    kind: 'failed',
    code: 'service_unavailable',
    mayBePosted: false,
  });
});

test('an ambiguous result waits before the search, and the last attempt ends with an unknown outcome', () => {
  const unclear = { kind: 'retry', error: 'HTTP 502 without an answer', ambiguous: true } as const;
  assert.deepEqual(afterPost(unclear, rules), {
    kind: 'later',
    code: 'http-502',
    delayMs: 30_000,
    mayBePosted: true,
    counts: true,
  });
  assert.deepEqual(afterPost(unclear, { ...rules, attempt: 3 }), {
    kind: 'failed',
    code: 'outcome-unknown',
    reason: 'http-502',
    mayBePosted: true,
  });
});

test('a message found in Slack counts as sent, a missing one may be posted, and a failed lookup is not retried', () => {
  assert.equal(afterLookup({ kind: 'absent' }, rules), undefined);
  assert.deepEqual(afterLookup({ kind: 'found', ts: '1.2', channel: 'C1' }, rules), {
    kind: 'sent',
    ts: '1.2',
    channelId: 'C1',
  });
  assert.deepEqual(afterLookup({ kind: 'unknowable', error: 'missing_scope' }, rules), {
    kind: 'failed',
    code: 'outcome-unknown',
    reason: 'Lookup failed, the message may have been posted: missing_scope',
    mayBePosted: true,
  });
  const away = afterLookup({ kind: 'retry', error: 'fatal_error' }, rules);
  assert.ok(away?.kind === 'later' && away.mayBePosted);
});

test('failure codes contain no text of the response', () => {
  assert.equal(failureCodeOf('invalid_auth'), 'invalid_auth');
  assert.equal(failureCodeOf('HTTP 502 without an answer'), 'http-502');
  assert.equal(failureCodeOf('connect ECONNREFUSED 127.0.0.1:1'), 'unreachable');
  assert.equal(failureCodeOf('socket hang up', true), 'no-answer');
});
