import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  admitCall,
  freshBreaker,
  settleCall,
  type BreakerPermit,
  type BreakerPolicy,
  type BreakerResult,
  type BreakerState,
} from './circuit-breaker.ts';
import { propertyRuns } from '../testing/property-runs.ts';

const policy: BreakerPolicy = {
  failuresMax: 3,
  openMs: 1_000,
  openMsMax: 4_000,
  probesMax: 1,
  probesToClose: 2,
  probeMsMax: 10_000,
};

/** One call after the other: the state after them, or the rejection. */
function after(results: readonly BreakerResult['kind'][], nowMs = 0, from = freshBreaker) {
  let state: BreakerState = from;
  for (const kind of results) {
    const admission = admitCall(state, policy, nowMs);
    assert.equal(admission.kind, 'allowed', `${kind} at ${nowMs}`);
    if (admission.kind !== 'allowed') continue;
    const result = kind === 'throttled' ? { kind, pauseMs: 700 } : { kind };
    state = settleCall(admission.state, policy, { permit: admission.permit, result, nowMs });
  }
  return state;
}

test('consecutive failures open the breaker, unless a call in between succeeds', () => {
  assert.equal(after(['failed', 'failed', 'worked', 'failed', 'failed']).kind, 'closed');
  const state = after(['failed', 'failed', 'failed']);
  assert.ok(state.kind === 'open' && state.untilMs === 1_000);
  const admission = admitCall(state, policy, 400);
  assert.ok(admission.kind === 'rejected' && admission.backInMs === 600);
});

test('after the open time one probe is allowed at a time, and two successful probes close the breaker', () => {
  const open = after(['failed', 'failed', 'failed']);
  const first = admitCall(open, policy, 1_000);
  assert.ok(first.kind === 'allowed' && first.state.kind === 'half-open');
  assert.equal(admitCall(first.state, policy, 1_001).kind, 'rejected');
  assert.equal(after(['worked'], 1_000, open).kind, 'half-open');
  assert.equal(after(['worked', 'worked'], 1_000, open).kind, 'closed');
});

test('each failed probe doubles the open time up to its cap, and a recovery resets it', () => {
  let state = after(['failed', 'failed', 'failed']);
  const lengths: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const atMs = state.kind === 'open' ? state.untilMs : Number.NaN;
    state = after(['failed'], atMs, state);
    lengths.push(state.kind === 'open' ? state.untilMs - atMs : Number.NaN);
  }
  assert.deepEqual(lengths, [2_000, 4_000, 4_000, 4_000]);
  const well = after(['worked', 'worked'], 1_000_000, state);
  const again = after(['failed', 'failed', 'failed'], 1_000_000, well);
  assert.ok(again.kind === 'open' && again.untilMs === 1_001_000);
});

test('a requested pause opens the breaker, and one probe follows', () => {
  const state = after(['throttled']);
  assert.ok(state.kind === 'open' && state.untilMs === 700 && state.openings === 0);
  assert.equal(after(['worked', 'worked'], 700, state).kind, 'closed');
});

test('a cancelled probe allows the next one and changes nothing else', () => {
  const open = after(['failed', 'failed', 'failed']);
  const state = after(['cancelled', 'cancelled', 'worked'], 1_000, open);
  assert.ok(state.kind === 'half-open' && state.successes === 1 && state.probes.length === 0);
});

test('a probe without a result does not keep the breaker half-open', () => {
  const open = after(['failed', 'failed', 'failed']);
  const lost = admitCall(open, policy, 1_000);
  assert.equal(lost.kind, 'allowed');
  const next = admitCall(lost.state, policy, 11_000);
  assert.equal(next.kind, 'allowed');
  // The late result of the lost probe is ignored: its successor decides.
  assert.ok(lost.kind === 'allowed');
  const result = { permit: lost.permit, result: { kind: 'failed' }, nowMs: 11_001 } as const;
  assert.equal(settleCall(next.state, policy, result), next.state);
});

test('failures of calls from before the breaker opened do not count after it recovered', () => {
  const late = admitCall(freshBreaker, policy, 0);
  assert.ok(late.kind === 'allowed');
  const open = after(['failed', 'failed', 'failed'], 0, late.state);
  const well = after(['worked', 'worked'], 1_000, open);
  const result = { permit: late.permit, result: { kind: 'failed' }, nowMs: 1_001 } as const;
  assert.equal(settleCall(well, policy, result), well);
  const throttled = { ...result, result: { kind: 'throttled', pauseMs: 5 } } as const;
  assert.equal(settleCall(well, policy, throttled), well);
});

test('a breaker obeys its rules over any history', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('call' as const), waitMs: fc.integer({ min: 0, max: 3_000 }) }),
    fc.record({
      do: fc.constant('settle' as const),
      pick: fc.nat(20),
      kind: fc.constantFrom('worked' as const, 'failed' as const, 'cancelled' as const),
    }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      let state: BreakerState = freshBreaker;
      let nowMs = 0;
      let failuresInRow = 0;
      const out: BreakerPermit[] = [];
      for (const each of steps) {
        if (each.do === 'call') {
          nowMs += each.waitMs;
          const admission = admitCall(state, policy, nowMs);
          // Open: no call; closed: all calls; half-open: as many as there are probes.
          if (state.kind === 'closed') assert.equal(admission.kind, 'allowed');
          if (state.kind === 'open')
            assert.equal(admission.kind, nowMs < state.untilMs ? 'rejected' : 'allowed');
          if (admission.kind === 'rejected') assert.ok(admission.backInMs > 0);
          else out.push(admission.permit);
          state = admission.state;
          if (state.kind === 'half-open') assert.ok(state.probes.length <= policy.probesMax);
          continue;
        }
        const [permit] = out.splice(each.pick % Math.max(1, out.length), 1);
        if (permit === undefined) continue;
        const before: BreakerState = state;
        state = settleCall(state, policy, { permit, result: { kind: each.kind }, nowMs });
        // Results of calls from before the last change are ignored.
        if (permit.era !== before.era) assert.equal(state, before);
        assert.ok(state.era - before.era <= 1 && state.era >= before.era);
        // Model of the closed state: it opens at exactly so many failures in a row.
        if (before.kind === 'closed' && permit.era === before.era) {
          if (each.kind === 'worked') failuresInRow = 0;
          if (each.kind === 'failed') failuresInRow += 1;
          assert.equal(state.kind, failuresInRow >= policy.failuresMax ? 'open' : 'closed');
        }
        if (before.kind !== state.kind) failuresInRow = 0;
      }
      // Liveness: after enough time, a destination that works is used again.
      nowMs += policy.openMsMax + policy.probeMsMax;
      state = after(['worked', 'worked'], nowMs, state);
      assert.equal(state.kind, 'closed');
    }),
    { numRuns: propertyRuns(500) },
  );
});
