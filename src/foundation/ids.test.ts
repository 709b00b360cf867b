import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fakeClock } from '../testing/fake-clock.ts';
import { createIds, idFromKey } from './ids.ts';

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('ids are UUIDv7 and carry the time in their first 48 bits', () => {
  const clock = fakeClock({ nowMs: 1_700_000_000_000 });
  const id = createIds({ clock }).next();
  assert.match(id, version7);
  assert.equal(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), 1_700_000_000_000);
});

test('ids of one source always ascend, also when the clock stands still or steps back', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -50, max: 50 }), { maxLength: 300 }), (steps) => {
      let nowMs = 1_000_000;
      const ids = createIds({ clock: { now: () => nowMs, sleep: async () => {} } });
      let last = '';
      for (const step of steps) {
        nowMs += step;
        const id = ids.next();
        assert.ok(id > last, `${id} after ${last}`);
        last = id;
      }
    }),
  );
});

test('more ids than a millisecond can count move on to the next millisecond', () => {
  const ids = createIds({ clock: fakeClock(), fill: (bytes) => bytes.fill(0xff) });
  const all = Array.from({ length: 10_000 }, () => ids.next());
  assert.deepEqual(all.toSorted(), all);
  assert.equal(new Set(all).size, all.length);
});

test('a key always has the same UUIDv5, and two keys have different ones', () => {
  assert.equal(idFromKey('core|payments|request|1'), idFromKey('core|payments|request|1'));
  assert.notEqual(idFromKey('core|payments|request|1'), idFromKey('core|payments|request|2'));
  // Fixed: ids that were stored with it must match those derived tomorrow.
  assert.equal(
    idFromKey('core|notify|sendSlack|maker-test1'),
    '005f39c2-602b-5372-8b3d-02b4982183ba',
  );
  assert.match(
    idFromKey('x'),
    /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
});
