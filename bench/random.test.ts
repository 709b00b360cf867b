import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandom } from './random.ts';

test('returns the same values for the same seed and other values for another seed', () => {
  assert.equal(createRandom(1).uuid(), createRandom(1).uuid());
  assert.notEqual(createRandom(1).uuid(), createRandom(2).uuid());
});

test('returns true in about the requested share of the calls', () => {
  const random = createRandom(7);
  const hits = Array.from({ length: 1_000 }, () => random.chance(0.3)).filter(Boolean).length;
  assert.ok(hits > 250 && hits < 350, `${hits} of 1,000`);
});

test('shuffles a copy without losing an item', () => {
  const items = Array.from({ length: 50 }, (_item, index) => index);
  const shuffled = createRandom(3).shuffle(items);
  assert.notDeepEqual(shuffled, items);
  assert.deepEqual(
    shuffled.toSorted((left, right) => left - right),
    items,
  );
});

test('creates strings in the format of a UUID', () => {
  assert.match(
    createRandom(5).uuid(),
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
});
