import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually } from '../../assertions.ts';
import { newName, type StorageCases } from './fixture.ts';

const long = { leaseMs: 600_000, ttlMs: 600_000 };
const newKey = () => ({ eventId: randomUUID(), handler: newName() });

export const processedCases: StorageCases = {
  async 'exactly one of several concurrent claims succeeds'({ storage: { processed } }) {
    const key = newKey();
    const claims = await Promise.all(Array.from({ length: 12 }, () => processed.claim(key, long)));
    assert.equal(claims.filter(({ kind }) => kind === 'claimed').length, 1);
    assert.equal(claims.filter(({ kind }) => kind === 'busy').length, 11);
  },

  async 'a confirmed event is done for its handler only'({ storage: { processed } }) {
    const key = newKey();
    const claim = await processed.claim(key, long);
    assert.ok(claim.kind === 'claimed');
    assert.equal(await processed.confirm(key, claim.token), true);
    assert.deepEqual(await processed.claim(key, long), { kind: 'done' });
    const other = { ...key, handler: newName() };
    assert.equal((await processed.claim(other, long)).kind, 'claimed');
  },

  async 'a released claim is available at once'({ storage: { processed } }) {
    const key = newKey();
    const claim = await processed.claim(key, long);
    assert.ok(claim.kind === 'claimed');
    assert.equal(await processed.release(key, claim.token), true);
    assert.equal((await processed.claim(key, long)).kind, 'claimed');
  },

  async 'another process takes over a claim of a dead process, whose late confirmation fails'({
    storage: { processed },
  }) {
    const key = newKey();
    const late = await processed.claim(key, { leaseMs: 30, ttlMs: 60_000 });
    assert.ok(late.kind === 'claimed');
    await eventually(
      'the claim passes on',
      async () => (await processed.claim(key, long)).kind === 'claimed',
    );
    assert.equal(await processed.confirm(key, late.token), false);
    assert.equal(await processed.release(key, late.token), false);
    assert.equal((await processed.claim(key, long)).kind, 'busy');
  },

  async 'sweeps only expired entries, a batch at a time'({ storage: { processed } }) {
    const kept = newKey();
    const claim = await processed.claim(kept, long);
    assert.ok(claim.kind === 'claimed');
    await processed.confirm(kept, claim.token);
    const keys = Array.from({ length: 5 }, newKey);
    for (const key of keys) await processed.claim(key, { leaseMs: 10, ttlMs: 10 });
    let swept = 0;
    await eventually('all five are swept', async () => {
      const removed = await processed.sweep(2);
      assert.ok(removed <= 2);
      swept += removed;
      return swept >= 5;
    });
    assert.deepEqual(await processed.claim(kept, long), { kind: 'done' });
  },
};
