import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { createVisitorBook, notifyLimits, visitorOfAddress } from './visitor-limits.ts';

test('a bucket refills over time, and daily counts start again at midnight UTC', async () => {
  const clock = fakeClock();
  const book = createVisitorBook({ ...notifyLimits, requestsBurst: 2, messagesPerDay: 1 }, clock);
  book.request('a');
  book.request('a');
  assert.throws(() => book.request('a'), /too many requests/);
  book.request('b');
  await clock.advance(5_000);
  book.request('a');
  book.message('a');
  assert.throws(() => book.message('a'), /daily message quota/);
  await clock.advance(86_400_000);
  book.message('a');
});

test('a burst of 0 forbids an action, and an infinite one does not limit it', () => {
  const limits = { ...notifyLimits, emailsBurst: 0, requestsBurst: Infinity };
  const book = createVisitorBook({ ...limits, attachmentBytesPerDay: 1_000 }, fakeClock());
  assert.throws(() => book.email('a'));
  for (let at = 0; at < 1_000; at += 1) book.request('a');
  assert.deepEqual(
    [book.bytes('a', 900), book.bytes('a', 101), book.bytes('a', 100)],
    [true, false, true],
  );
});

test('a visitor is an IPv4 address or an IPv6 network', () => {
  assert.equal(visitorOfAddress('::ffff:10.0.0.1'), 'ip:10.0.0.1');
  assert.equal(visitorOfAddress('2001:db8:1:2:3:4:5:6'), visitorOfAddress('2001:db8:1:2::9'));
  assert.notEqual(visitorOfAddress('2001:db8:1:2::1'), visitorOfAddress('2001:db8:1:3::1'));
});
