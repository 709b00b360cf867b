import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bucketOf, checkRateLimit, createRateLimiter } from './rate-limit.ts';

test('a limit is a bucket that holds the burst, by default one second of the rate', () => {
  assert.deepEqual(bucketOf({ perSecond: 10, burst: 3 }), { count: 3, perMs: 300 });
  assert.deepEqual(bucketOf({ perSecond: 2.5 }), { count: 2, perMs: 800 });
  assert.deepEqual(bucketOf({ perSecond: 0.1 }), { count: 1, perMs: 10_000 });
});

test('rejected callers retry one after the other, not all at once', () => {
  const limiter = createRateLimiter();
  const keys = [{ key: 'a', limit: { perSecond: 10, burst: 1 } }];
  assert.deepEqual(limiter.admit(keys, 0, 0), { kind: 'go', waitMs: 0 });
  const back = Array.from({ length: 4 }, () => {
    const admission = limiter.admit(keys, 0, 0);
    return admission.kind === 'rejected' ? admission.backInMs : -1;
  });
  assert.deepEqual(back, [200, 300, 400, 500]);
});

test('a token is taken from all keys or from none', () => {
  const limiter = createRateLimiter();
  const wide = { key: 'wide', limit: { perSecond: 1, burst: 2 } };
  const narrow = (tenant: string) => ({ key: tenant, limit: { perSecond: 1, burst: 1 } });
  assert.equal(limiter.admit([wide, narrow('a')], 0, 0).kind, 'go');
  assert.equal(limiter.admit([wide, narrow('a')], 0, 0).kind, 'rejected');
  // The rejected call took no token from the wide bucket.
  assert.equal(limiter.admit([wide, narrow('b')], 0, 0).kind, 'go');
  assert.equal(limiter.admit([wide, narrow('c')], 0, 0).kind, 'rejected');
});

test('the limiter drops the buckets of 100,000 tenants that called once', () => {
  const limiter = createRateLimiter();
  const limit = { perSecond: 1_000, burst: 1 };
  for (let tenant = 0; tenant < 100_000; tenant += 1) {
    limiter.admit([{ key: String(tenant), limit }], tenant, 0);
  }
  assert.ok(limiter.size <= 1_024, String(limiter.size));
});

test('an invalid limit is rejected', () => {
  for (const limit of [{ perSecond: 0 }, { perSecond: Number.NaN }, { perSecond: 1, burst: 0.5 }]) {
    assert.throws(() => checkRateLimit(limit, 'x'), { code: 'CONFIG_INVALID' });
  }
});
