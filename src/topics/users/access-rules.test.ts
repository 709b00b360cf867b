import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAccessBook } from './access-rules.ts';
import { createUserBook } from './user-directory.ts';

test('a pattern with many stars is matched without backtracking', () => {
  // A backtracking regular expression takes longer than the universe exists.
  const access = [{ topic: `${'*a'.repeat(30)}*b`, permission: 'read-write' }] as const;
  const book = createAccessBook(createUserBook({ access }), 'deny');
  assert.equal(book.may(undefined, 'a'.repeat(64), 'read'), false);
  assert.equal(book.may(undefined, `${'a'.repeat(63)}b`, 'read'), true);
});

test('a rule of the user has precedence, then the longer pattern, then the one that allows writing', () => {
  const access = [
    { topic: '*', permission: 'deny' },
    { topic: 'up*', permission: 'write-only' },
    { user: 'ann', topic: 'up12', permission: 'read-only' },
    { user: 'ann', topic: 'up*', permission: 'read-write' },
  ] as const;
  const book = createAccessBook(createUserBook({ access }), 'read-write');
  const ann = { name: 'ann', role: 'user' } as const;
  assert.equal(book.may(undefined, 'other', 'read'), false);
  assert.equal(book.may(undefined, 'up9', 'write'), true);
  assert.equal(book.may(undefined, 'up9', 'read'), false);
  assert.equal(book.may(ann, 'up12', 'write'), false);
  assert.equal(book.may(ann, 'up2', 'write'), true);
  assert.equal(book.may({ name: 'root', role: 'admin' }, 'other', 'write'), true);
});
