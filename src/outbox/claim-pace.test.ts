import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimRoom, createSendRate, firstPace, nextPace } from './claim-pace.ts';

const sizes = { batchSize: 500, concurrency: 50 };
const dry = { waiting: 0, running: 0, sentPerMs: 1 };
const busy = { waiting: 200, running: 50, sentPerMs: 1 };

test('claims start small, and double while sending waits for claims', () => {
  let pace = firstPace(sizes);
  assert.deepEqual(pace, { limit: 100, enough: 50 });
  const limits = Array.from({ length: 4 }, () => {
    pace = nextPace(pace, dry, sizes);
    return pace.limit;
  });
  assert.deepEqual(limits, [200, 400, 500, 500]);
  assert.equal(pace.enough, 1_050);
  assert.equal(firstPace({ batchSize: 10, concurrency: 50 }).limit, 10);
});

test('if sending is slower than claiming, a claim has as many messages as are sent in 50 ms, at least one', () => {
  const pace = { limit: 500, enough: 550 };
  const slow = (sentPerMs: number | undefined) => nextPace(pace, { ...busy, sentPerMs }, sizes);
  assert.deepEqual(slow(0.5), { limit: 25, enough: 13 });
  assert.deepEqual(slow(0), { limit: 1, enough: 1 });
  assert.deepEqual(slow(100), { limit: 500, enough: 500 });
  assert.deepEqual(slow(undefined), { limit: 500, enough: 50 });
});

test('no message is claimed while enough messages wait, or too many outcomes are unsettled', () => {
  const pace = firstPace(sizes);
  const now = { waiting: 0, running: 0, unsettled: 0 };
  assert.equal(claimRoom(pace, now, sizes), 100);
  assert.equal(claimRoom(pace, { ...now, waiting: 50 }, sizes), 0);
  assert.equal(claimRoom(pace, { ...now, unsettled: 2_000 }, sizes), 0);
  assert.equal(claimRoom({ ...pace, limit: 1 }, { ...now, running: 20, waiting: 10 }, sizes), 20);
});

test('the rate is that of the last interval that was long enough', () => {
  const rate = createSendRate(0);
  for (let count = 0; count < 30; count += 1) rate.sent();
  assert.equal(rate.perMs(10), undefined);
  assert.equal(rate.perMs(60), 0.5);
  rate.sent();
  assert.equal(rate.perMs(70), 0.5);
  assert.equal(rate.perMs(160), 0.01);
});
