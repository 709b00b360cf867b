import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decideAcquire, decideRenew, type LeaseRow } from './decide-lease.ts';

const ttlMs = 1_000;

test('a free lease is acquired with the first token, a held one is not', () => {
  const first = decideAcquire(undefined, { owner: 'a', nowMs: 0, ttlMs });
  assert.deepEqual(first, {
    kind: 'acquired',
    row: { owner: 'a', token: 1, expiresAtMs: 1_000 },
  });
  const row = first.kind === 'acquired' ? first.row : undefined;
  assert.deepEqual(decideAcquire(row, { owner: 'b', nowMs: 400, ttlMs }), {
    kind: 'held',
    retryInMs: 600,
  });
});

test('an expired lease goes to another owner with a higher token, and its last owner loses it', () => {
  const old: LeaseRow = { owner: 'a', token: 7, expiresAtMs: 1_000 };
  const next = decideAcquire(old, { owner: 'b', nowMs: 1_000, ttlMs });
  assert.equal(next.kind === 'acquired' && next.row.token, 8);
  assert.equal(
    decideRenew(next.kind === 'acquired' ? next.row : undefined, { token: 7, nowMs: 1_001, ttlMs }),
    undefined,
  );
});

test('an owner can renew an expired lease that no process acquired', () => {
  const old: LeaseRow = { owner: 'a', token: 7, expiresAtMs: 1_000 };
  assert.equal(decideRenew(old, { token: 7, nowMs: 5_000, ttlMs })?.expiresAtMs, 6_000);
});

test('over any history, at most one token is the newest and tokens only grow', () => {
  const step = fc.record({
    owner: fc.constantFrom('a', 'b', 'c'),
    waitMs: fc.integer({ min: 0, max: 1_500 }),
    renew: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let row: LeaseRow | undefined;
      let nowMs = 0;
      const tokens = new Map<string, number>();
      for (const { owner, waitMs, renew } of steps) {
        nowMs += waitMs;
        const token = tokens.get(owner);
        if (renew && token !== undefined) {
          const renewed = decideRenew(row, { token, nowMs, ttlMs });
          assert.equal(renewed !== undefined, token === row?.token);
          row = renewed ?? row;
          continue;
        }
        const decision = decideAcquire(row, { owner, nowMs, ttlMs });
        if (decision.kind === 'held') {
          assert.ok(row !== undefined && row.expiresAtMs > nowMs);
          continue;
        }
        assert.ok(decision.row.token > (row?.token ?? 0));
        row = decision.row;
        tokens.set(owner, row.token);
      }
    }),
  );
});
