import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addValue, collectMatch, createShape, removeValue, type Shape } from './subject-shape.ts';
import { propertyRuns } from '../testing/property-runs.ts';

// Eight hashes that differ in their tags and slots, among them the last slot of every table.
const hashOf = (key: number): number => [0, 1, 2, 7, -1, -2, 1 << 25, 0x7fffffff][key % 8] ?? 0;
const literals = () => createShape<number>({ tokens: 1, stars: 0, keyKind: 'subject' });

test('keeps every key within reach though all of them share a few hashes', () => {
  const step = fc.record({ key: fc.nat(20), value: fc.nat(1), add: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 150 }), (steps) => {
      const shape = literals();
      const model = new Map<string, number[]>();
      for (const { key, value, add } of steps) {
        const entry = { hash: hashOf(key), key: `k${key}`, value };
        const values = model.get(entry.key) ?? [];
        model.set(entry.key, values);
        if (add) {
          addValue(shape, entry);
          values.push(value);
        } else if (values.includes(value)) {
          removeValue(shape, entry);
          values.splice(values.indexOf(value), 1);
        }
      }
      for (let key = 0; key <= 20; key += 1) {
        const expected = sorted(model.get(`k${key}`) ?? []);
        assert.deepEqual(valuesOf(shape, hashOf(key), `k${key}`), expected);
      }
      assert.equal(shape.size, [...model.values()].filter((values) => values.length > 0).length);
    }),
    { numRuns: propertyRuns(300) },
  );
});

test('gives its memory back when its keys leave', () => {
  const shape = literals();
  const entries = Array.from({ length: 1000 }, (_, i) => ({
    hash: Math.imul(i, 0x9e3779b1),
    key: `k${i}`,
    value: i,
  }));
  for (const entry of entries) addValue(shape, entry);
  assert.equal(shape.tags.length, 2048);
  for (const entry of entries) removeValue(shape, entry);
  assert.equal(shape.size, 0);
  assert.equal(shape.tags.length, 8);
  assert.ok(shape.cells.every((cell) => cell === undefined));
});

function valuesOf(shape: Shape<number>, hash: number, subject: string): number[] {
  const found: number[] = [];
  const top = collectMatch(shape, { hash, subject }, found, 0);
  assert.equal(top, found.length);
  return sorted(found);
}

function sorted(values: readonly number[]): number[] {
  return values.toSorted((a, b) => a - b);
}
