import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { errorCodes } from './error-codes.ts';
import { hasCode, MillraceError } from './error.ts';

test('an error has its code, details, cause and whether it is retryable', () => {
  const cause = new Error('connection reset');
  const error = new MillraceError('SERVER_UNAVAILABLE', 'no server', {
    cause,
    details: { port: 1 },
  });
  assert.deepEqual(
    [error.code, error.retryable, error.details],
    ['SERVER_UNAVAILABLE', true, { port: 1 }],
  );
  assert.equal(error.cause, cause);
});

test('a code is recognised across copies of the package, by name and code alone', () => {
  const foreign = Object.assign(new Error('x'), { name: 'MillraceError', code: 'USAGE' });
  assert.ok(hasCode(foreign, 'USAGE'));
  assert.ok(!hasCode(foreign, 'ABORTED'));
  assert.ok(!hasCode(Object.assign(new Error('x'), { code: 'USAGE' }), 'USAGE'));
  assert.ok(!hasCode('USAGE', 'USAGE'));
});

test('docs/errors.md lists exactly the codes of the table, with their meaning and remedy', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (yes|no) \| (.+) \| (.+) \|$/gm)].map(
    ([, code, retryable, meaning, remedy]) => [code, retryable, meaning, remedy],
  );
  const expected = Object.entries(errorCodes).map(([code, info]) => [
    code,
    info.retryable ? 'yes' : 'no',
    info.meaning,
    info.remedy,
  ]);
  assert.deepEqual(rows, expected, 'run: npm run generate');
});
