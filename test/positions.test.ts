// Positions are opaque: only the store and its engines know what a position means. Everything else compares the ones that
// the store has given out, because the sum of a position and a number is no position of a byte-addressed log.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * May convert positions: the store, its engines, columns of SQL tables, the servers of numeric protocols, and the rates of
 * the console, which shows none for positions that do not count events.
 */
const mayConvert =
  /^src\/(?:store|engines|server\/kurrent|testing)\/|\/sql\/|\/sql-[a-z-]+\.ts$|^console\/src\/lib\/rates\.ts$/;

const conversion = /\btoSequence\b|\btoPosition\b/;
const parsed = /(?:parseInt|Number|BigInt)\([^()]*(?:[pP]osition|[cC]heckpoint|\b[hH]ead)\b/;
/** The form of a position, whatever its variable is called; `hex` is a byte of another format. */
const hexadecimal = /parseInt\((?!hex\b)[^()]*,\s*16\)|(?:Number|BigInt)\([^()]*0x/;
const arithmetic =
  /\b(?:toSequence|toPosition)\([^()]*\)\s*[-+*/%]|[-+*/%]\s*toSequence\(|\bposition\s*[-+]\s*[\d?$]/;

const problemIn = (file: string, text: string): string | undefined => {
  if (!mayConvert.test(file)) {
    if (conversion.test(text)) return `${file} converts positions`;
    if (parsed.test(text) || hexadecimal.test(text))
      return `${file} reads a number out of a position`;
  }
  const isColumn = /\/sql\/|\/sql-[a-z-]+\.ts$/.test(file);
  return isColumn && arithmetic.test(text) ? `${file} computes with a position` : undefined;
};

test('no code outside the store and its engines computes with positions', () => {
  const files = globSync('{src,modules,console/src}/**/*.{ts,tsx}', { cwd: root }).filter(
    (file) => !/\.test\.tsx?$/.test(file) && !file.includes('/templates/'),
  );
  assert.ok(files.length > 100, `only ${files.length} files seen`);
  const problems = files.flatMap(
    (file) => problemIn(file, readFileSync(`${root}${file}`, 'utf8')) ?? [],
  );
  assert.deepEqual(problems, []);
});

test('the rule detects each kind of arithmetic', () => {
  const caught = (file: string, text: string): boolean => problemIn(file, text) !== undefined;
  assert.ok(caught('src/subscriptions/a.ts', 'toPosition(toSequence(upTo) + 1)'));
  assert.ok(caught('src/projections/a.ts', "import { toSequence } from '../store/position.ts';"));
  assert.ok(caught('modules/shop/a.ts', 'Number.parseInt(event.position, 16) + 1'));
  assert.ok(caught('modules/shop/a.ts', 'BigInt(`0x${position}`)'));
  assert.ok(caught('modules/shop/a.ts', 'Number.parseInt(checkpoint, 16)'));
  assert.ok(caught('console/src/views/a.tsx', 'BigInt(`0x${store.head}`)'));
  assert.ok(caught('src/outbox/sql/a.ts', 'toSequence(checkpoint) - 1'));
  assert.ok(caught('src/subscriptions/a.ts', 'Number.parseInt(upTo, 16) + 1'));
  assert.ok(caught('src/platform/a.ts', 'BigInt(`0x${end}`) - 1n'));
  assert.ok(caught('src/subscriptions/sql/a.ts', 'set position = position + 1'));
  assert.ok(!caught('src/outbox/sql/a.ts', 'values: [toSequence(checkpoint)]'));
  assert.ok(!caught('src/engines/sqlite/store/a.ts', 'toSequence(after) + 1'));
  assert.ok(!caught('src/subscriptions/a.ts', 'reached >= position'));
});
