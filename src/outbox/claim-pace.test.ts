import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSendRate, firstPace, nextPace } from './claim-pace.ts';

const sizes = { batchSize: 500, concurrency: 50 };

test('begins with little, and doubles while sending waits for claims', () => {
  let pace = firstPace(sizes);
  assert.deepEqual(pace, { limit: 100, enough: 50 });
  const limits = Array.from({ length: 4 }, () => {
    pace = nextPace(pace, { ...sizes, isHungry: true, sentPerMs: 1 });
    return pace.limit;
  });
  assert.deepEqual(limits, [200, 400, 500, 500]);
  assert.equal(pace.enough, 1_050);
  assert.equal(firstPace({ batchSize: 10, concurrency: 50 }).limit, 10);
});

test('claims what is sent in 50 ms where sending is the slower one, and never nothing', () => {
  const pace = { limit: 500, enough: 550 };
  const slow = (sentPerMs: number | undefined) =>
    nextPace(pace, { ...sizes, isHungry: false, sentPerMs });
  assert.deepEqual(slow(0.5), { limit: 25, enough: 13 });
  assert.deepEqual(slow(0), { limit: 1, enough: 1 });
  assert.deepEqual(slow(100), { limit: 500, enough: 50 });
  assert.deepEqual(slow(undefined), { limit: 500, enough: 50 });
});

test('the rate is that of the last time that was long enough to tell', () => {
  const rate = createSendRate(0);
  for (let count = 0; count < 30; count += 1) rate.sent();
  assert.equal(rate.perMs(10), undefined);
  assert.equal(rate.perMs(60), 0.5);
  rate.sent();
  assert.equal(rate.perMs(70), 0.5);
  assert.equal(rate.perMs(160), 0.01);
});
