import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comparePlaces } from './topic-bus.ts';

test('places of one number and of two numbers are ordered', () => {
  assert.ok(comparePlaces('9', '10') < 0);
  assert.ok(comparePlaces('1700-2', '1700-10') < 0);
  assert.ok(comparePlaces('999-5', '1000-0') < 0);
  assert.equal(comparePlaces('7', '7'), 0);
});
