import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comparePositions } from './topic-bus.ts';

test('positions of one number and of two numbers are ordered', () => {
  assert.ok(comparePositions('9', '10') < 0);
  assert.ok(comparePositions('1700-2', '1700-10') < 0);
  assert.ok(comparePositions('999-5', '1000-0') < 0);
  assert.equal(comparePositions('7', '7'), 0);
});
