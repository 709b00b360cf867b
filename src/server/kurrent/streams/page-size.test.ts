import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPageSize } from './page-size.ts';

test('pages grow while events are small, and shrink to one event when they are large', () => {
  const size = createPageSize(200);
  const sizes = [100, 100, 100, 100, 100, 1_048_576, 100].map((bytesEach) => {
    const before = size.current;
    size.took(before, before * bytesEach);
    return before;
  });
  assert.deepEqual(sizes, [16, 32, 64, 128, 200, 200, 1]);
  assert.equal(size.current, 2);
});

test('a page never exceeds the maximum', () => {
  const size = createPageSize(5);
  size.took(5, 5);
  assert.equal(size.current, 5);
});
