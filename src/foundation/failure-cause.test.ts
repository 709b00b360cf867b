import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorFacts, failureCause, failureTitle } from './failure-cause.ts';
import { MillraceError } from './error.ts';

const source = { source: 'delivery', where: 'webhook:partner' };

test('failures that differ in ids, numbers, times and quoted text have one cause', () => {
  const pairs = [
    ['no such mailbox "ada@example.com"', 'no such mailbox "bob@example.com"'],
    ['timed out after 5000 ms', 'timed out after 12 ms'],
    [
      'unknown order 0198c1d2-1111-7abc-8def-0123456789ab',
      'unknown order 0198c1d2-2222-7abc-8def-0123456789ab',
    ],
    ['late since 2026-11-18T10:00:00.000Z', 'late since 2026-11-17T09:12:00.1Z'],
    ['broken\n  at one.ts:1', 'broken\n  at two.ts:2'],
  ] as const;
  for (const [one, other] of pairs) {
    assert.deepEqual(
      failureCause({ ...source, error: one }),
      failureCause({ ...source, error: other }),
    );
  }
  assert.equal(failureTitle('took 12 ms'), 'took ‹n› ms');
});

test('another status, message, place, source, name, code or function is another cause', () => {
  const frame = (at: string) => ({ stack: `    at ${at}` });
  const causes = [
    failureCause({ ...source, error: 'HTTP 503 from 10.0.0.1' }),
    failureCause({ ...source, error: 'HTTP 404 from 10.0.0.1' }),
    failureCause({ ...source, error: 'connection refused' }),
    failureCause({ ...source, where: 'webhook:other', error: 'connection refused' }),
    failureCause({ ...source, source: 'job', error: 'connection refused' }),
    failureCause({ ...source, error: 'connection refused' }, { name: 'TypeError' }),
    failureCause({ ...source, error: 'connection refused' }, { code: 'ECONNREFUSED' }),
    failureCause({ ...source, error: 'connection refused' }, frame('send (/app/mail.ts:1:2)')),
    failureCause({ ...source, error: 'connection refused' }, frame('send (/app/sms.ts:1:2)')),
  ].map(({ fingerprint }) => fingerprint);
  assert.equal(new Set(causes).size, causes.length);
  assert.equal(failureTitle('HTTP 503 from 10.0.0.1').slice(0, 8), 'HTTP 503');
});

test('another line, folder or library above the own function is the same cause', () => {
  const own = ['    at send (/app/src/mail.ts:10:2)', '    at async send (/srv/src/mail.ts:11:9)'];
  const above = ['    at open (node:net:3:1)', '    at pull (/app/node_modules/x/y.js:3:1)'];
  const causes = own.flatMap((line) => [line, [...above, line].join('\n')]);
  const fingerprints = causes.map(
    (stack) => failureCause({ ...source, error: 'no route' }, { stack }).fingerprint,
  );
  assert.equal(new Set(fingerprints).size, 1);
});

test('the facts of an error have its frames and those of its cause, but no message', () => {
  const secret = 'ada@example.com\n    at home (Elm Street:1:2)';
  const error = new MillraceError('STORE_UNAVAILABLE', secret, { cause: new TypeError(secret) });
  const { name, code, stack = '' } = errorFacts(error);
  assert.deepEqual([name, code], ['MillraceError', 'STORE_UNAVAILABLE']);
  assert.equal(stack.includes('ada@'), false);
  assert.equal(stack.includes('Elm Street'), false);
  assert.equal(stack.split('\n').filter((line) => line === 'caused by').length, 1);
  assert.match(stack, /failure-cause\.test\.ts:\d+:\d+/);
  assert.deepEqual(errorFacts('text'), {});
});

test('the stored facts are bounded', () => {
  const error = Object.assign(new Error('x'), { code: 'c'.repeat(500), name: 'n'.repeat(500) });
  error.stack = `Error: x\n${'    at send (/app/mail.ts:1:2)\n'.repeat(500)}`;
  const { name, code, stack } = errorFacts(error);
  assert.deepEqual([name?.length, code?.length, stack?.length], [100, 100, 2_000]);
});
