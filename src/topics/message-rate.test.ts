import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { createMessageRate } from './message-rate.ts';

test('the message rate covers the last minutes, from the first whole minute on', async () => {
  const clock = fakeClock();
  const rate = createMessageRate(clock);
  for (let at = 0; at < 120; at += 1) rate.count();
  assert.equal(rate.perSecond(), 0);
  await clock.advance(60_000);
  assert.equal(rate.perSecond(), 2);
  await clock.advance(60_000);
  assert.equal(rate.perSecond(), 1);
  rate.count();
  assert.equal(rate.total, 121);
  // A message after the last sample counts in the next one; the sample with the first 120 has been dropped.
  await clock.advance(9 * 60_000);
  assert.equal(rate.perSecond(), 1 / 540);
  await clock.advance(20 * 60_000);
  assert.equal(rate.perSecond(), 0);
});
