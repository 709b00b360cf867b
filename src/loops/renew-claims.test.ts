import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { renewClaims } from './renew-claims.ts';

const leaseMs = 6_000;

function rig(renew: (items: readonly string[]) => Promise<readonly boolean[]>) {
  const clock = fakeClock({ nowMs: 0 });
  const ended = new AbortController();
  const calls: string[] = [];
  const lost: string[] = [];
  const renewal = renewClaims<string>({
    clock,
    leaseMs,
    signal: ended.signal,
    renew(items) {
      calls.push(`${clock.now()}: ${items.join()}`);
      return renew(items);
    },
  });
  const hold = (item: string) => renewal.hold(item, clock.now(), () => void lost.push(item));
  return { clock, calls, lost, hold, [Symbol.dispose]: () => ended.abort() };
}

test('renews a lease from a third of its time on, and never one that ended before', async () => {
  using at = rig(async (items) => items.map(() => true));
  const slow = at.hold('slow');
  at.hold('fast').end();
  await at.clock.advance(4_500);
  at.hold('young');
  assert.deepEqual(at.calls, ['2000: slow', '4000: slow']);
  await at.clock.advance(2_000);
  assert.deepEqual(at.calls.slice(2), ['6000: slow']);
  assert.equal(slow.isCurrent(), true);
  assert.deepEqual(at.lost, []);
});

test('reports each claim that is no longer valid once', async () => {
  using at = rig(async (items) => items.map((item) => item !== 'taken'));
  at.hold('taken');
  at.hold('kept');
  await at.clock.advance(5_000);
  assert.deepEqual(at.lost, ['taken']);
  assert.deepEqual(at.calls, ['2000: taken,kept', '4000: kept']);
});

for (const [kind, renew] of [
  ['fail', () => Promise.reject(new Error('away'))],
  ['hang', () => new Promise<never>(() => undefined)],
] as const) {
  test(`while renewals ${kind}, a claim is lost before its lease ends`, async () => {
    using at = rig(renew);
    const lease = at.hold('item');
    await at.clock.advance(4_999);
    assert.deepEqual(at.lost, []);
    await at.clock.advance(1);
    assert.deepEqual(at.lost, ['item']);
    assert.equal(lease.isCurrent(), true);
  });
}

test('after a suspension, the claims are renewed before they are considered lost', async () => {
  const clock = fakeClock({ nowMs: 0 });
  let suspendedMs = 0;
  const suspended = { ...clock, now: () => clock.now() + suspendedMs };
  const ended = new AbortController();
  const lost: string[] = [];
  const renewal = renewClaims<string>({
    clock: suspended,
    leaseMs,
    signal: ended.signal,
    renew: async (items) => items.map((item) => item === 'kept'),
  });
  const kept = renewal.hold('kept', 0, () => void lost.push('kept'));
  renewal.hold('taken', 0, () => void lost.push('taken'));
  suspendedMs = 60_000;
  assert.equal(kept.isCurrent(), false);
  await clock.advance(1_000);
  assert.deepEqual(lost, ['taken']);
  assert.equal(kept.isCurrent(), true);
  ended.abort();
});
