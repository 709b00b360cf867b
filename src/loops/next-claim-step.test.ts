import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  firstClaimState,
  nextClaimStep,
  type ClaimEvent,
  type ClaimLoad,
  type ClaimStep,
} from './next-claim-step.ts';

const none: ClaimLoad = { waiting: 0, waitingBytes: 0, running: 0, unsettled: 0 };
const rules = { room: ({ waiting }: ClaimLoad) => 10 - waiting, bytesMax: 1_000 };

/** Takes steps one after the other; each event comes with the load at that time. */
function machine() {
  let state = firstClaimState;
  return (event: ClaimEvent, load: Partial<ClaimLoad> = {}): ClaimStep => {
    const step = nextClaimStep(state, event, { load: { ...none, ...load }, rules });
    state = step.state;
    return step;
  };
}

const changed = { kind: 'changed' } as const;
const claimed = (count: number, epoch = 0, bytes = 10 * count): ClaimEvent => ({
  kind: 'claimed',
  count,
  epoch,
  bytes,
});
const settled = (epoch = 0): ClaimEvent => ({ kind: 'settled', epoch });
const failed = (call: 'claim' | 'settle', epoch = 0): ClaimEvent => ({
  kind: 'failed',
  call,
  epoch,
});
const backedOff = { kind: 'backed-off' } as const;

test('makes one claim at a time, as large as the room', () => {
  const next = machine();
  assert.equal(next(changed).claim, 10);
  assert.equal(next(changed).claim, 0);
  assert.equal(next(claimed(10), { waiting: 4, running: 6 }).claim, 6);
  assert.equal(next(claimed(6), { waiting: 10 }).claim, 0);
  assert.equal(next(changed, { waiting: 9 }).claim, 1);
});

test('sleeps after a claim without items, and claims again when it is woken', () => {
  const next = machine();
  next(changed);
  const asleep = next(claimed(0));
  assert.deepEqual([asleep.sleep, asleep.claim], [true, 0]);
  const still = next(changed);
  assert.deepEqual([still.sleep, still.claim], [false, 0]);
  assert.equal(next({ kind: 'woken' }).claim, 10);
});

test('a claim has no more items than fit into the bytes, by the size of the last items', () => {
  const next = machine();
  next(changed);
  assert.equal(next(claimed(2, 0, 600), { waiting: 1, waitingBytes: 300 }).claim, 2);
  assert.equal(next(claimed(2, 0, 600), { waiting: 3, waitingBytes: 900 }).claim, 0);
  assert.equal(next(changed, { waiting: 2, waitingBytes: 600 }).claim, 1);
  // An item that is larger than the limit is claimed alone.
  assert.equal(next(claimed(1, 0, 5_000), { waiting: 1, waitingBytes: 5_000 }).claim, 0);
  assert.equal(next(changed).claim, 1);
});

test('settles one batch at a time, while a claim runs', () => {
  const next = machine();
  next(changed);
  assert.equal(next(changed, { unsettled: 1 }).settle, true);
  assert.equal(next(changed, { unsettled: 2 }).settle, false);
  assert.equal(next(settled(), { unsettled: 1 }).settle, true);
  assert.equal(next(settled()).settle, false);
});

test('an outage is reported once, backs off, and ends when all outcomes are stored', () => {
  const next = machine();
  next(changed);
  next(changed, { unsettled: 3 });
  const lost = next(failed('settle'), { unsettled: 3 });
  assert.deepEqual([lost.report, lost.backOff, lost.settle], ['lost', true, false]);
  // The claim from before the outage proves nothing.
  const late = next(failed('claim'), { unsettled: 3 });
  assert.deepEqual([late.report, late.backOff, late.state.failures], [undefined, false, 1]);
  const again = next(backedOff, { unsettled: 3 });
  assert.deepEqual([again.settle, again.claim], [true, 0]);
  const second = next(failed('settle', 1), { unsettled: 3 });
  assert.deepEqual([second.report, second.backOff, second.state.failures], [undefined, true, 2]);
  next(backedOff, { unsettled: 3 });
  assert.equal(next(settled(1), { unsettled: 1 }).report, undefined);
  const restored = next(settled(1));
  assert.deepEqual([restored.report, restored.claim, restored.state.failures], ['restored', 10, 0]);
});

test('a claim that began before an outage and fails after its end reports no second one', () => {
  const next = machine();
  next(changed);
  next(changed, { unsettled: 1 });
  next(failed('settle'), { unsettled: 1 });
  next(backedOff, { unsettled: 1 });
  assert.equal(next(settled(1)).report, 'restored');
  const late = next(failed('claim', 0));
  assert.deepEqual([late.report, late.backOff, late.claim], [undefined, false, 10]);
  assert.equal(next(failed('claim', 2)).report, 'lost');
});

test('a stopped loop claims nothing, and is over when all items have ended and are stored', () => {
  const next = machine();
  next(changed);
  const stop = next({ kind: 'stop' }, { running: 2 });
  assert.deepEqual([stop.claim, stop.state.phase], [0, 'stopping']);
  assert.equal(next(claimed(0), { running: 2 }).state.phase, 'stopping');
  assert.equal(next({ kind: 'woken' }, { running: 1, unsettled: 1 }).settle, true);
  assert.equal(next(settled(), { running: 1 }).state.phase, 'stopping');
  const last = next(changed, { unsettled: 1 });
  assert.deepEqual([last.settle, last.state.settle], [true, 'last']);
  assert.equal(next(settled()).state.phase, 'over');
});

test('a stopped loop tries once more to store the outcomes after everything has ended, without backing off', () => {
  const next = machine();
  next(changed);
  next(claimed(1), { running: 1 });
  next(claimed(0), { running: 1 });
  next({ kind: 'stop' }, { running: 1, unsettled: 1 });
  next({ kind: 'woken' }, { running: 1, unsettled: 1 });
  assert.equal(next(failed('settle'), { running: 1, unsettled: 1 }).settle, false);
  const last = next(changed, { unsettled: 2 });
  assert.deepEqual([last.settle, last.state.phase], [true, 'stopping']);
  const over = next(failed('settle', 1), { unsettled: 2 });
  assert.deepEqual([over.settle, over.state.phase], [false, 'over']);
});
