import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCheckpointPace } from './checkpoint-pace.ts';

test('a checkpoint is due after each interval of examined events', () => {
  const pace = createCheckpointPace(0, 10);
  assert.deepEqual(pace.reached(9), []);
  assert.deepEqual(pace.reached(25), [10, 20]);
  assert.deepEqual(pace.reached(29), []);
  assert.deepEqual(pace.reached(30), [30]);
});

test('returns only the latest of many due checkpoints', () => {
  const pace = createCheckpointPace(5, 10);
  const points = pace.reached(10_005);
  assert.equal(points.length, 10);
  assert.equal(points.at(-1), 10_005);
});
