import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { validateSubject } from './subject-match.ts';
import { streamKeyToSubject, subjectToStreamKey } from './subject-redis.ts';
import { propertyRuns } from '../testing/property-runs.ts';

test('maps the subjects of the document to its stream keys', () => {
  const key = subjectToStreamKey('gbe.notify.customer.cust_abc123.alert');
  assert.equal(key, 'gbe:notify:customer:cust_abc123:alert');
  assert.equal(streamKeyToSubject(key), 'gbe.notify.customer.cust_abc123.alert');
  assert.equal(subjectToStreamKey('gbe.tasks.email-send.queue'), 'gbe:tasks:email-send:queue');
});

test('leads every valid subject to a key of its own and back', () => {
  const token = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 });
  const subject = fc
    .array(token, { minLength: 1, maxLength: 6 })
    .map((tokens) => tokens.join('.'))
    .filter(isValid);
  fc.assert(
    fc.property(subject, (text) => {
      const key = subjectToStreamKey(text);
      assert.ok(!key.includes('.'));
      assert.equal(streamKeyToSubject(key), text);
    }),
    { numRuns: propertyRuns(500) },
  );
});

test('refuses a colon, wildcards and empty tokens in a subject', () => {
  for (const subject of ['a:b', 'a.b:', 'a.*', 'a.>', 'a..b', '', 'a b']) {
    assert.throws(() => subjectToStreamKey(subject), isInvalid, subject);
  }
});

test('refuses a key that no subject leads to', () => {
  for (const key of ['a.b', 'a:b.c', 'a::b', ':a', 'a:', '', 'a:*', 'a:>']) {
    assert.throws(() => streamKeyToSubject(key), isInvalid, key);
  }
});

function isValid(subject: string): boolean {
  try {
    validateSubject(subject);
    return true;
  } catch (error) {
    if (isInvalid(error)) return false;
    throw error;
  }
}

function isInvalid(error: unknown): boolean {
  return hasCode(error, 'NAME_INVALID');
}
