import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkRateLimit, freshRate, takeToken } from './rate-limit.ts';
import { createRateLimiter } from './rate-limiter.ts';

test('a burst goes at once, and then one at each interval', () => {
  const limit = { perSecond: 10, burst: 3 };
  let state = freshRate;
  const waits = Array.from({ length: 5 }, () => {
    const { waitMs, taken } = takeToken(state, limit, 1_000);
    state = taken;
    return waitMs;
  });
  assert.deepEqual(waits, [0, 0, 0, 100, 200]);
});

test('in any window, no more go than the burst and what the rate allows', () => {
  const steps = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 50 });
  const limits = fc.record({
    perSecond: fc.integer({ min: 1, max: 50 }),
    burst: fc.integer({ min: 1, max: 10 }),
  });
  fc.assert(
    fc.property(steps, limits, (pauses, limit) => {
      let state = freshRate;
      let nowMs = 1_000_000;
      const starts: number[] = [];
      for (const pause of pauses) {
        nowMs += pause;
        const { waitMs, taken } = takeToken(state, limit, nowMs);
        state = taken;
        starts.push(nowMs + waitMs);
      }
      for (let from = 0; from < starts.length; from += 1) {
        for (let to = from; to < starts.length; to += 1) {
          const windowMs = (starts[to] ?? 0) - (starts[from] ?? 0);
          const allowed = limit.burst + (windowMs * limit.perSecond) / 1_000;
          if (to - from + 1 > allowed + 1e-6) assert.fail(`${to - from + 1} in ${windowMs} ms`);
        }
      }
    }),
  );
});

test('those that are sent away come back one after the other, not all at once', () => {
  const limiter = createRateLimiter();
  const keys = [{ key: 'a', limit: { perSecond: 10, burst: 1 } }];
  assert.deepEqual(limiter.admit(keys, 0, 0), { kind: 'go', waitMs: 0 });
  const back = Array.from({ length: 4 }, () => {
    const answer = limiter.admit(keys, 0, 0);
    return answer.kind === 'refused' ? answer.backInMs : -1;
  });
  assert.deepEqual(back, [200, 300, 400, 500]);
});

test('a token is taken of all keys or of none', () => {
  const limiter = createRateLimiter();
  const wide = { key: 'wide', limit: { perSecond: 1, burst: 2 } };
  const narrow = (tenant: string) => ({ key: tenant, limit: { perSecond: 1, burst: 1 } });
  assert.equal(limiter.admit([wide, narrow('a')], 0, 0).kind, 'go');
  assert.equal(limiter.admit([wide, narrow('a')], 0, 0).kind, 'refused');
  // The refused one took nothing of the wide bucket.
  assert.equal(limiter.admit([wide, narrow('b')], 0, 0).kind, 'go');
  assert.equal(limiter.admit([wide, narrow('c')], 0, 0).kind, 'refused');
});

test('a hundred thousand tenants that came once are forgotten', () => {
  const limiter = createRateLimiter();
  const limit = { perSecond: 1_000, burst: 1 };
  for (let tenant = 0; tenant < 100_000; tenant += 1) {
    limiter.admit([{ key: String(tenant), limit }], tenant, 0);
  }
  assert.ok(limiter.size <= 1_024, String(limiter.size));
});

test('a limit that makes no sense is refused', () => {
  for (const limit of [{ perSecond: 0 }, { perSecond: Number.NaN }, { perSecond: 1, burst: 0.5 }]) {
    assert.throws(() => checkRateLimit(limit, 'x'), { code: 'CONFIG_INVALID' });
  }
});
