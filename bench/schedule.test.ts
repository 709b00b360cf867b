import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextBatch, planCase, rotate } from './schedule.ts';

test('lets every subject be first in turn', () => {
  const orders = [0, 1, 2, 3].map((round) => rotate(['a', 'b', 'c'], round).join(''));
  assert.deepEqual(orders, ['abc', 'bca', 'cab', 'abc']);
  assert.deepEqual(rotate([], 2), []);
});

test('sizes the next batch by the duration of the last one', () => {
  assert.equal(nextBatch(100, { elapsedMs: 50, targetMs: 100 }), 200);
  assert.equal(nextBatch(100, { elapsedMs: 400, targetMs: 100 }), 25);
});

test('grows a batch in steps, and never below one', () => {
  assert.equal(nextBatch(1, { elapsedMs: 0, targetMs: 100 }), 10);
  assert.equal(nextBatch(10, { elapsedMs: 0.001, targetMs: 100 }), 100);
  assert.equal(nextBatch(1, { elapsedMs: 5_000, targetMs: 100 }), 1);
});

test('divides the time of a case between its subjects and rounds', () => {
  const plan = planCase({ budgetMs: 4_000, subjects: 2, measure: 'throughput', roundsMax: 10 });
  assert.deepEqual(plan, { warmUpMs: 500, sliceMs: 120, roundsMax: 10 });
  const planned = 2 * (plan.warmUpMs + plan.sliceMs * plan.roundsMax);
  assert.ok(planned <= 4_000);
});

test('keeps slices long enough to be exact and short enough to take turns', () => {
  assert.equal(sliceMs(0), 50);
  assert.equal(sliceMs(1_000_000), 200);
});

function sliceMs(budgetMs: number): number {
  return planCase({ budgetMs, subjects: 2, measure: 'throughput', roundsMax: 7 }).sliceMs;
}
