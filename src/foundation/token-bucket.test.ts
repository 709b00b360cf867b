import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { reserveTokens, takeTokens, type TokenBucket } from './token-bucket.ts';

const buckets: fc.Arbitrary<TokenBucket> = fc.record({
  count: fc.integer({ min: 1, max: 50 }),
  perMs: fc.integer({ min: 1, max: 60_000 }),
});
const pauses = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 50 });

test('a full bucket grants its tokens immediately, then one at each refill', () => {
  let fullAtMs = 0;
  const waits = Array.from({ length: 5 }, () => {
    const reserved = reserveTokens({ count: 3, perMs: 300, fullAtMs, nowMs: 1_000, wanted: 1 });
    fullAtMs = reserved.fullAtMs;
    return reserved.waitMs;
  });
  assert.deepEqual(waits, [0, 0, 0, 100, 200]);
});

test('a reservation of several tokens waits for the last of them', () => {
  const bucket = { count: 10, perMs: 1_000, nowMs: 0 };
  assert.deepEqual(reserveTokens({ ...bucket, fullAtMs: 0, wanted: 10 }), {
    waitMs: 0,
    fullAtMs: 1_000,
  });
  assert.deepEqual(reserveTokens({ ...bucket, fullAtMs: 300, wanted: 10 }), {
    waitMs: 300,
    fullAtMs: 1_300,
  });
});

test('a partial take returns what is available and when the next token is', () => {
  const bucket = { count: 3, perMs: 60_000 };
  const first = takeTokens({ ...bucket, fullAtMs: 0, nowMs: 1_000, wanted: 5 });
  assert.deepEqual(first, { taken: 3, fullAtMs: 61_000, freeAtMs: 21_000 });
  const early = takeTokens({ ...bucket, fullAtMs: first.fullAtMs, nowMs: 20_999, wanted: 1 });
  assert.deepEqual(early, { taken: 0, fullAtMs: 61_000, freeAtMs: 21_000 });
  const next = takeTokens({ ...bucket, fullAtMs: first.fullAtMs, nowMs: 21_000, wanted: 1 });
  assert.deepEqual(next, { taken: 1, fullAtMs: 81_000, freeAtMs: 21_000 });
});

test('a clock that goes back grants no additional token', () => {
  const bucket = { count: 2, perMs: 1_000 };
  const { fullAtMs } = takeTokens({ ...bucket, fullAtMs: 0, nowMs: 10_000, wanted: 2 });
  assert.equal(takeTokens({ ...bucket, fullAtMs, nowMs: 5_000, wanted: 2 }).taken, 0);
});

test('no window grants more than the bucket holds plus what it refills', () => {
  fc.assert(
    fc.property(pauses, buckets, (waits, bucket) => {
      let [fullAtMs, nowMs] = [0, 1_000_000];
      const grants: number[] = [];
      for (const pause of waits) {
        nowMs += pause;
        const reserved = reserveTokens({ ...bucket, fullAtMs, nowMs, wanted: 1 });
        fullAtMs = reserved.fullAtMs;
        grants.push(nowMs + reserved.waitMs);
      }
      for (const [from, first] of grants.entries()) {
        for (const [offset, last] of grants.slice(from).entries()) {
          const allowed = bucket.count + ((last - first) * bucket.count) / bucket.perMs;
          assert.ok(offset + 1 <= allowed + 1e-6, `${offset + 1} in ${last - first} ms`);
        }
      }
    }),
  );
});

test('a take without a wait and a reservation without a wait agree', () => {
  fc.assert(
    fc.property(pauses, buckets, (waits, bucket) => {
      let [fullAtMs, nowMs] = [0, 1_000_000];
      for (const pause of waits) {
        nowMs += pause;
        const taken = takeTokens({ ...bucket, fullAtMs, nowMs, wanted: 1 });
        const reserved = reserveTokens({ ...bucket, fullAtMs, nowMs, wanted: 1 });
        assert.equal(taken.taken === 1, reserved.waitMs < 1e-3, String(reserved.waitMs));
        if (taken.taken === 1) assert.equal(taken.fullAtMs, reserved.fullAtMs);
        else assert.ok(taken.freeAtMs >= nowMs + reserved.waitMs);
        fullAtMs = taken.fullAtMs;
      }
    }),
  );
});
