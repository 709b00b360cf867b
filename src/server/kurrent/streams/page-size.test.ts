import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPageSize } from './page-size.ts';

test('pages grow while events are small, and shrink to one when they are not', () => {
  const size = createPageSize(200);
  const sizes = [100, 100, 100, 100, 100, 1_048_576, 100].map((bytesEach) => {
    const before = size.current;
    size.took(before, before * bytesEach);
    return before;
  });
  assert.deepEqual(sizes, [16, 32, 64, 128, 200, 200, 1]);
  assert.equal(size.current, 2);
});

test('a page never has more events than it may', () => {
  const size = createPageSize(5);
  size.took(5, 5);
  assert.equal(size.current, 5);
});
