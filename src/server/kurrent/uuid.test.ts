import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { RpcError } from './rpc-error.ts';
import { toUuid, uuidText, wireUuid } from './uuid.ts';

test('text and halves give the same id', () => {
  fc.assert(
    fc.property(fc.uuid(), (id) => {
      assert.equal(uuidText(wireUuid(id, true)), id);
      assert.equal(uuidText(wireUuid(id, false)), id);
      assert.equal(uuidText({ string: id.toUpperCase() }), id);
    }),
  );
});

test('an invalid id is rejected', () => {
  for (const uuid of [undefined, {}, { string: '' }, { string: 'order-7' }]) {
    assert.throws(() => uuidText(uuid), RpcError);
  }
});

test('any text is mapped to an id, always the same', () => {
  const id = toUuid('order-7');
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5/);
  assert.equal(toUuid('order-7'), id);
  assert.equal(toUuid(id), id);
});
