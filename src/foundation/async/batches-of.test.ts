import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchesOf } from './batches-of.ts';

test('splits by count, and keeps the order', () => {
  assert.deepEqual(batchesOf([1, 2, 3, 4, 5], { countMax: 2 }), [[1, 2], [3, 4], [5]]);
  assert.deepEqual(batchesOf([], { countMax: 2 }), []);
});

test('splits by size, and puts a larger item into a batch by itself', () => {
  const sizeOf = (text: string): number => text.length;
  const texts = ['aa', 'b', 'cccccc', 'd', 'ee', 'f'];
  assert.deepEqual(batchesOf(texts, { sizeMax: 3, sizeOf }), [
    ['aa', 'b'],
    ['cccccc'],
    ['d', 'ee'],
    ['f'],
  ]);
});
