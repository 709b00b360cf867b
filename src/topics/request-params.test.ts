import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeMimeWords } from './request-params.ts';

test('invalid encoded words are left unchanged', () => {
  assert.equal(decodeMimeWords('=?utf-8?b?!?='), '=?utf-8?b?!?=');
  assert.equal(decodeMimeWords('a =?iso-8859-1?q?=E4?= b'), 'a ä b');
  fc.assert(fc.property(fc.string(), (text) => void decodeMimeWords(`=?utf-8?q?${text}?=`)));
});
