import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createSortedList } from './sorted-list.ts';

const byNumber = (a: number, b: number): number => a - b;

test('keeps the values sorted after any adds and removes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), fc.nat(3_000)), { maxLength: 3_000 }),
      fc.nat(3_000),
      (steps, bound) => {
        const list = createSortedList(byNumber);
        const model = new Set<number>();
        for (const [isAdded, value] of steps) {
          if (isAdded && !model.has(value)) {
            list.add(value);
            model.add(value);
          } else if (!isAdded) {
            assert.equal(list.remove(value), model.delete(value));
          }
        }
        const sorted = [...model].toSorted(byNumber);
        assert.deepEqual([...list.ascending()], sorted);
        assert.deepEqual([...list.descending()], sorted.toReversed());
        assert.deepEqual(
          [...list.descending(bound)],
          sorted.filter((value) => value < bound).toReversed(),
        );
        assert.equal(list.size, sorted.length);
      },
    ),
  );
});

test('adds and removes a hundred thousand values quickly', () => {
  const list = createSortedList(byNumber);
  const values = Array.from({ length: 100_000 }, (_, n) => (n * 7_919) % 100_003);
  for (const value of values) list.add(value);
  assert.deepEqual([...list.ascending()], values.toSorted(byNumber));
  for (const value of values) assert.equal(list.remove(value), true);
  assert.equal(list.size, 0);
});
