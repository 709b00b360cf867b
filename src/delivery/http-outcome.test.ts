import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { httpOutcomeLimits, outcomeOfResponse, parseRetryAfter } from './http-outcome.ts';

const nowMs = Date.UTC(2025, 8, 30, 10);
const kindOf = (status: number): string => outcomeOfResponse({ status, body: '', nowMs }).kind;

test('2xx is sent, 408, 425, 429 and 5xx are retried, every other 4xx is dead', () => {
  for (let status = 200; status < 600; status += 1) {
    const expected =
      status < 300
        ? 'sent'
        : [301, 308].includes(status) ||
            (status >= 400 && status < 500 && ![408, 425, 429].includes(status))
          ? 'dead'
          : 'retry';
    assert.equal(kindOf(status), expected, String(status));
  }
});

test('the outcome contains the response of the receiver, and the error text quotes it', () => {
  const outcome = outcomeOfResponse({ status: 422, body: ' no such account\n', nowMs });
  assert.deepEqual(outcome, {
    kind: 'dead',
    error: 'HTTP 422: no such account',
    answer: { status: 422, body: ' no such account\n' },
  });
});

test('Retry-After is understood as seconds and as a date', () => {
  assert.equal(parseRetryAfter('120', nowMs), 120_000);
  assert.equal(parseRetryAfter(' 1.5 ', nowMs), 1_500);
  assert.equal(parseRetryAfter(new Date(nowMs + 90_000).toUTCString(), nowMs), 90_000);
  // The two old forms that clients have to accept; asctime has no time zone and is ignored.
  assert.equal(parseRetryAfter('Tuesday, 30-Sep-25 10:01:00 GMT', nowMs), 60_000);
});

test('a date in the past means now, and an invalid value is ignored', () => {
  assert.equal(parseRetryAfter(new Date(nowMs - 90_000).toUTCString(), nowMs), 0);
  for (const text of ['', 'soon', '-5', '1e9', '12 monkeys', '0x10', 'NaN', 'Xyz, 99 GMT']) {
    assert.equal(parseRetryAfter(text, nowMs), undefined, text);
  }
  assert.equal(parseRetryAfter(undefined, nowMs), undefined);
  assert.equal(parseRetryAfter(null, nowMs), undefined);
});

test('an overloaded receiver with a Retry-After throttles all messages to it', () => {
  const busy = outcomeOfResponse({ status: 429, body: '', retryAfter: '7', nowMs });
  assert.ok(busy.kind === 'retry' && busy.throttled === true && busy.afterMs === 7_000);
  const broken = outcomeOfResponse({ status: 500, body: '', retryAfter: '7', nowMs });
  assert.ok(broken.kind === 'retry' && broken.throttled === false && broken.afterMs === 7_000);
  const unsaid = outcomeOfResponse({ status: 429, body: '', nowMs });
  assert.ok(unsaid.kind === 'retry' && unsaid.throttled === false);
});

test('the wait is between 0 and the cap for any header', () => {
  const header = fc.oneof(fc.string(), fc.nat().map(String), fc.bigInt({ min: 0n }).map(String));
  fc.assert(
    fc.property(header, (text) => {
      const ms = parseRetryAfter(text, nowMs);
      assert.ok(ms === undefined || (ms >= 0 && ms <= httpOutcomeLimits.retryAfterMsMax));
    }),
  );
});
