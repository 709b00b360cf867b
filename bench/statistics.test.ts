import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median, percentile, spread } from './statistics.ts';

test('takes the middle value, or the mean of the two middle values', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([7]), 7);
});

test('has no median for an empty list', () => {
  assert.ok(Number.isNaN(median([])));
});

test('sorts numbers by value, not as strings', () => {
  assert.equal(median([10, 9, 100]), 10);
});

test('takes percentiles by nearest rank', () => {
  const values = Array.from({ length: 100 }, (_item, index) => 100 - index);
  assert.equal(percentile(values, 50), 50);
  assert.equal(percentile(values, 99), 99);
  assert.equal(percentile(values, 100), 100);
  assert.equal(percentile([3], 99), 3);
  assert.equal(percentile([1, 2], 0), 1);
});

test('computes the largest deviation of the rounds from their median', () => {
  assert.equal(spread([100, 90, 120]), 0.2);
  assert.equal(spread([5]), 0);
  assert.equal(spread([0, 0]), 0);
});
