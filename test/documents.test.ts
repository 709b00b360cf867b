// docs/documents.md: each line of the requirement documents names a test that exists, or says what is missing.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('..', import.meta.url);
const text = readFileSync(new URL('docs/documents.md', root), 'utf8');

interface Line {
  readonly section: string;
  readonly line: string;
  readonly state: string;
  readonly where: string;
  readonly test: string;
}

/** The rows of the five tables; a bar inside of a cell is escaped. */
function linesOf(document: string): readonly Line[] {
  return document
    .split('\n')
    .map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .filter((cells) => cells.length === 7 && states.has(cells[3] ?? ''))
    .map(([, section = '', line = '', state = '', where = '', named = '']) => ({
      section,
      line,
      state,
      where,
      test: named,
    }));
}

const states = new Set(['holds', 'differs', 'open']);
const lines = linesOf(text);

/** The problem of a line, if it has one. */
function problemOf({ line, state, where, test: named }: Line): string | undefined {
  if (where === '') return `${line}: says neither where it holds nor why not`;
  if (named === '–') return state === 'open' ? undefined : `${line}: names no test`;
  const [, file = '', title = ''] = /^`([^`]+)`: (.+)$/.exec(named) ?? [];
  const url = new URL(file, root);
  if (file === '' || !existsSync(url)) return `${line}: no file ${file}`;
  const source = readFileSync(url, 'utf8').replaceAll(String.raw`\'`, "'");
  const isThere = ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`));
  return isThere ? undefined : `${line}: ${file} has no test '${title}'`;
}

test('each line of the requirement documents names a test that exists, or says what is missing', () => {
  assert.deepEqual(
    lines.flatMap((line) => problemOf(line) ?? []),
    [],
  );
});

test('the page has the lines of all five documents', () => {
  const tables = text.split('\n## ').slice(1).map(linesOf);
  assert.equal(tables.length, 5);
  for (const table of tables) assert.ok(table.length >= 20);
  assert.ok(lines.length >= 184);
});

test('a renamed test, a missing file and a line without a test are reported', () => {
  const row = { section: '1', line: 'x', where: 'here' };
  const own = '`test/documents.test.ts`: the page has the lines of all five documents';
  assert.equal(problemOf({ ...row, state: 'holds', test: own }), undefined);
  assert.match(problemOf({ ...row, state: 'holds', test: `${own} again` }) ?? '', /has no test/);
  assert.match(problemOf({ ...row, state: 'holds', test: '`test/x.ts`: y' }) ?? '', /no file/);
  assert.match(problemOf({ ...row, state: 'differs', test: '–' }) ?? '', /names no test/);
  assert.equal(problemOf({ ...row, state: 'open', test: '–' }), undefined);
});
