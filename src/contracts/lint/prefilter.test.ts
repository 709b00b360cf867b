import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { mayHoldNames } from './prefilter.ts';

test('every bad code of the rules passes the look at the plain text', async () => {
  const rules = [
    'event-type',
    'stream-name',
    'subscription-name',
    'redis-key',
    'subject',
    'queue-name',
  ];
  let seen = 0;
  for (const rule of rules) {
    const file = await readFile(new URL(`rules/${rule}.test.ts`, import.meta.url), 'utf8');
    // One case per `code:`; what follows it up to the next field is the code as it is written.
    for (const [, code = ''] of file.matchAll(/code:\s*(["'`].*)/g)) {
      seen += 1;
      assert.equal(mayHoldNames(code, ['gbe', 'prod.gbe']), true, code);
    }
  }
  assert.ok(seen > 80, `only ${seen} cases were found`);
});

test('plain code is left alone', () => {
  for (const source of [
    "import { readFile } from 'node:fs/promises';\nexport const a = 1;",
    'export class Person { constructor(readonly name: string) {} }',
    "const greeting = `Hello ${name}`; throw new Error('no such user');",
  ]) {
    assert.equal(mayHoldNames(source, ['gbe']), false, source);
  }
});
