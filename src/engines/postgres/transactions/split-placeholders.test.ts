import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { knexStatement } from './from-knex.ts';
import { splitPlaceholders } from './split-placeholders.ts';

test('finds parameters and ignores dollar signs in strings, names, comments and dollar quotes', () => {
  const parts = [
    ['$1::json', 1],
    ['($12, $2)', 12, 2],
    [`'costs $1'' or $2'`],
    [String.raw`e'\'$1'`],
    [`"column $1"`],
    ['-- $1\n'],
    ['/* $1 */'],
    ['$$ $1 $$'],
    ['$body$ select $1 $body$'],
    ['price$1'],
    ['$3', 3],
  ] as const;
  const sql = parts.map(([text]) => text).join(' ');
  const expected = parts.flatMap(([, ...numbers]) => numbers.map((number) => number - 1));
  assert.deepEqual(splitPlaceholders(sql).indexes, expected);
});

test('joining the SQL with the parameters gives the original statement', () => {
  const piece = fc.constantFrom(
    `'$1'`,
    '"$2"',
    '$1',
    '$20',
    'select ',
    ' ? ',
    '-- x\n',
    '$$a$$',
    ',',
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const sql = pieces.join(' ');
      const { texts, indexes } = splitPlaceholders(sql);
      const whole = texts.map((text, at) => {
        const index = indexes[at];
        return index === undefined ? text : `${text}$${index + 1}`;
      });
      assert.equal(whole.join(''), sql);
      const wanted = pieces
        .filter((text) => /^\$\d+$/.test(text))
        .map((text) => Number(text.slice(1)) - 1);
      assert.deepEqual(indexes, wanted);
    }),
  );
});

test('Knex gets question marks as parameters, a value for each, and other question marks escaped', () => {
  const statement = knexStatement(`select $2 ? $1, '?', payload ?|$2`, ['a', 'b']);
  assert.equal(statement.text, String.raw`select  ? \?  ?, '\?', payload \?| ?`);
  assert.deepEqual(statement.bindings, ['b', 'a', 'b']);
  assert.deepEqual(knexStatement('select $1', [undefined]).bindings, [null]);
});
