import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { propertyRuns } from '../testing/property-runs.ts';
import {
  matchSubject,
  streamKeyToSubject,
  subjectToStreamKey,
  validatePattern,
  validateSubject,
} from './subject-match.ts';

const table: readonly (readonly [pattern: string, subject: string, expected: boolean])[] = [
  ['gbe.notify.customer.cust_abc123.>', 'gbe.notify.customer.cust_abc123.alert', true],
  ['gbe.notify.customer.cust_abc123.>', 'gbe.notify.customer.cust_abc1234.alert', false],
  ['gbe.notify.customer.*.alert', 'gbe.notify.customer.cust_abc123.alert', true],
  ['gbe.notify.customer.*.alert', 'gbe.notify.customer.cust_abc123.info', false],
  ['gbe.notify.broadcast.>', 'gbe.notify.broadcast.maintenance', true],
  ['gbe.events.>', 'gbe.events.auth.failure', true],
  ['gbe.events.>', 'gbe.events', false],
  ['gbe.tasks.email-send.>', 'gbe.tasks.email-send.queue', true],
  ['gbe.tasks.email-send.>', 'gbe.tasks.email.queue', false],
  ['gbe.tasks.*.terminal', 'gbe.tasks._control.sweep', false],
  ['>', 'a', true],
  ['>', 'a.b.c', true],
  ['*', 'a', true],
  ['*', 'a.b', false],
  ['*.>', 'a', false],
  ['*.>', 'a.b', true],
  ['a.b', 'a.b.c', false],
  ['a.b.c', 'a.b', false],
  // A wildcard is a whole token.
  ['foo*', 'foobar', false],
  ['foo*', 'foo*', true],
  ['foo.*-', 'foo.x-', false],
  ['foo.*-', 'foo.*-', true],
  ['foo.>-', 'foo.>-', true],
  ['foo.>-', 'foo.a.b', false],
  ['**', 'a', false],
  ['>>', 'a', false],
  // Wildcard characters in the subject are literals.
  ['a', '*', false],
  ['*', '>', true],
  // A string that NATS rejects matches nothing, not even itself.
  ['', '', false],
  ['>', '', false],
  ['*', '', false],
  ['a.', 'a.', false],
  ['.a', '.a', false],
  ['a..b', 'a..b', false],
  ['a.*.b', 'a..b', false],
  ['a.>', 'a.', false],
  ['a.>', 'a..b', false],
  ['a.>', 'a.b.', false],
  ['>', 'a.', false],
  ['>.a', '>.a', false],
  ['a.>.b', 'a.x.b', false],
  ['a.>.', 'a.x.y', false],
];

for (const [pattern, subject, expected] of table) {
  test(`"${pattern}" ${expected ? 'matches' : 'does not match'} "${subject}"`, () => {
    assert.equal(matchSubject(pattern, subject), expected);
  });
}

test('agrees with a naive matcher on 100,000 random pairs', () => {
  const random = createRandom(20_260_214);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const tokens = ['a', 'a', 'b', 'ab', 'a*', '>b'];
  const patternTokens = [...tokens, '*', '*', '*'];
  let matches = 0;
  let invalid = 0;
  for (let i = 0; i < 100_000; i += 1) {
    const subject = Array.from({ length: 1 + Math.floor(random() * 4) }, () => pick(tokens));
    const pattern = subject.map((token) => (random() < 0.6 ? token : pick(patternTokens)));
    if (random() < 0.3) pattern.splice(Math.floor(random() * 4), 4, '>');
    if (random() < 0.1) pick([pattern, subject]).splice(Math.floor(random() * 4), 1, '');
    if (random() < 0.05) pick([pattern, subject]).splice(Math.floor(random() * 4), 0, '>', '*');
    const [p, s] = [pattern.join('.'), subject.join('.')];
    const expected = naiveMatch(p, s);
    if (matchSubject(p, s) !== expected) assert.fail(`"${p}" and "${s}": expected ${expected}`);
    if (expected) matches += 1;
    if (pattern.includes('') || subject.includes('')) invalid += 1;
  }
  assert.ok(matches > 20_000 && matches < 80_000, `${matches} matches`);
  assert.ok(invalid > 5000, `${invalid} invalid`);
});

test('accepts valid subjects in any script', () => {
  for (const subject of ['a', 'gbe.events.api.error', '$SYS.x', 'größe.价格.🚀', deep(32)]) {
    validateSubject(subject);
    validatePattern(subject);
  }
});

test('accepts wildcards in patterns', () => {
  for (const pattern of ['>', '*', '*.*', 'a.*.b', 'a.>', '*.>', `${deep(31)}.>`]) {
    validatePattern(pattern);
  }
});

const invalid: readonly (readonly [text: string, reason: RegExp])[] = [
  ['', /empty token/],
  ['.', /empty token/],
  ['a.', /empty token/],
  ['.a', /empty token/],
  ['a..b', /empty token/],
  ['a b', /whitespace/],
  ['a\t', /whitespace/],
  ['a\u0000', /control/],
  ['a\u00a0b', /whitespace/],
  ['a\u202eb', /invisible/],
  ['a\ud800', /invisible/],
  ['a\ufffd', /invisible/],
  ['a:b', /Redis/],
  [deep(33), /33 tokens; the limit is 32/],
];

test('rejects subjects that a transport cannot carry, with the reason', () => {
  for (const [text, reason] of invalid) {
    assert.throws(() => validateSubject(text), isInvalid('subject', reason), text);
    assert.throws(() => validatePattern(text), isInvalid('subject pattern', reason), text);
  }
});

test('rejects wildcards in a subject', () => {
  for (const subject of ['*', '>', 'a.*', 'a.>', 'a*', '>b']) {
    assert.throws(
      () => validateSubject(subject),
      isInvalid('subject', /one full subject/),
      subject,
    );
  }
});

test('rejects wildcards that NATS treats as literals or rejects', () => {
  for (const pattern of ['a*', '*a', '**', 'a.>b', '>>', 'a.b*.c']) {
    assert.throws(() => validatePattern(pattern), isInvalid('subject pattern', /inside a token/));
  }
  for (const pattern of ['>.a', 'a.>.b', '>.>']) {
    assert.throws(() => validatePattern(pattern), isInvalid('subject pattern', /before its end/));
  }
});

test('accepts 255 characters and rejects 256', () => {
  validateSubject('x'.repeat(255));
  assert.throws(
    () => validateSubject('x'.repeat(256)),
    (error) => hasCode(error, 'KEY_TOO_LONG'),
  );
});

test('rejects values that are not strings with the same error', () => {
  for (const value of [undefined, null, 5, ['a']]) {
    assert.throws(
      () => validateSubject(value as unknown as string),
      isInvalid('subject', /string/),
    );
  }
});

test('maps the subjects of the document to its stream keys', () => {
  const key = subjectToStreamKey('gbe.notify.customer.cust_abc123.alert');
  assert.equal(key, 'gbe:notify:customer:cust_abc123:alert');
  assert.equal(streamKeyToSubject(key), 'gbe.notify.customer.cust_abc123.alert');
  assert.equal(subjectToStreamKey('gbe.tasks.email-send.queue'), 'gbe:tasks:email-send:queue');
});

test('maps every valid subject to a key and back', () => {
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

test('rejects a colon, wildcards and empty tokens in a subject', () => {
  for (const subject of ['a:b', 'a.b:', 'a.*', 'a.>', 'a..b', '', 'a b']) {
    assert.throws(() => subjectToStreamKey(subject), isInvalidName, subject);
  }
});

test('rejects a key that is not the key of a subject', () => {
  for (const key of ['a.b', 'a:b.c', 'a::b', ':a', 'a:', '', 'a:*', 'a:>']) {
    assert.throws(() => streamKeyToSubject(key), isInvalidName, key);
  }
});

function isValid(subject: string): boolean {
  try {
    validateSubject(subject);
    return true;
  } catch (error) {
    if (isInvalidName(error)) return false;
    throw error;
  }
}

function isInvalidName(error: unknown): boolean {
  return hasCode(error, 'NAME_INVALID');
}

function naiveMatch(pattern: string, subject: string): boolean {
  const p = pattern.split('.');
  const s = subject.split('.');
  if (p.includes('') || s.includes('')) return false;
  const open = p.indexOf('>');
  if (open !== -1 && open !== p.length - 1) return false;
  const fixed = open === -1 ? p : p.slice(0, -1);
  const fits = open === -1 ? s.length === p.length : s.length >= p.length;
  return fits && fixed.every((token, i) => token === '*' || token === s[i]);
}

function deep(tokens: number): string {
  return Array.from({ length: tokens }, () => 'a').join('.');
}

function isInvalid(kind: string, reason: RegExp) {
  return (error: unknown): boolean =>
    hasCode(error, 'NAME_INVALID') &&
    error.details['kind'] === kind &&
    reason.test(String(error.details['reason']));
}

/** mulberry32: a fast deterministic generator. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
