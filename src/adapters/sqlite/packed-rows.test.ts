import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { packRows, unpackRows } from './packed-rows.ts';

test('rows come out of the pack as they went in, whatever characters they hold', () => {
  const text = fc.string({ unit: 'binary' });
  const cells = { eventId: text, type: text, tenant: text, payload: text, meta: text };
  const row = fc.record(cells, { noNullPrototype: true });
  fc.assert(
    fc.property(fc.array(row), (rows) => {
      assert.deepEqual(unpackRows(packRows(rows)), rows);
    }),
  );
});
