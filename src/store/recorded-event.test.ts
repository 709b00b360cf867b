import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { toIsoTime } from './recorded-event.ts';

test('times equal Date.toISOString across days, centuries and the epoch', () => {
  const ms = fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 });
  fc.assert(
    fc.property(ms, (time) => {
      assert.equal(toIsoTime(time), new Date(time).toISOString());
    }),
  );
});
