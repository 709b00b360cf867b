import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { propertyRuns } from '../../testing/property-runs.ts';
import { problemOf } from '../ntfy-problems.ts';
import { budgetLimits, createTemplateBudget } from './budget.ts';
import { callTemplateFunction, templateFunctionNames } from './functions.ts';
import { renderTemplate } from './render-template.ts';
import { TemplateProblem } from './syntax.ts';
import { isDict, TemplateTime, type TemplateValue } from './values.ts';

/** The result of a template, or the error text; fails unless the error is ntfy's for a bad request. */
function outcome(template: string, body = '{}', budget = createTemplateBudget()): string {
  try {
    return renderTemplate(template, body, 'x', budget);
  } catch (error) {
    assert.equal(problemOf(error).http, 400, String(error));
    return String(error);
  } finally {
    assert.ok(budget.spent <= budgetLimits.unitsMax);
  }
}

const times = (count: number, text: string): string => text.repeat(count);
const oneList = '{{$a := list 1}}';

test('a template that does too much work is rejected', () => {
  const hostile = [
    `${oneList}${times(27, '{{$a = list $a $a}}')}{{deepEqual $a $a}}`,
    `${oneList}${times(27, '{{$a = list $a $a}}')}{{$a}}`,
    `${oneList}${times(27, '{{$a = dict "x" $a "y" $a}}')}{{toJSON $a}}`,
    `${oneList}${times(40, '{{$a = concat $a $a}}')}`,
    `{{$a := "ab"}}${times(40, '{{$a = print $a $a}}')}`,
    '{{$s := repeat 9000 "aaaaaaaaaa"}}{{range 100}}{{$x := regexReplaceAll "(?:.*b|a)" $s "x"}}{{end}}',
    '{{$s := repeat 99 "a"}}{{range until 10000}}{{$x := regexMatch "b$" $s}}{{end}}',
    '{{$s := repeat 9000 "aaaaaaaaaa"}}{{$p := print "b" $s}}{{contains $p (print $s $s)}}',
    '{{$s := repeat 9000 "aaaaaaaaaa"}}{{replace "a" $s $s}}',
    '{{range until 10000}}{{range until 10000}}{{end}}{{end}}',
    '{{range 9000000000000000000}}{{end}}',
    '{{range 1000000}}{{$x := date "MST" now}}{{end}}',
  ];
  for (const template of hostile) assert.match(outcome(template), /timed out/, template);
  const wide = JSON.stringify(
    Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [at, at])),
  );
  assert.match(outcome('{{range until 10000}}{{if $}}{{end}}{{end}}', wide), /timed out/);
});

test('the templates of one message share a budget', () => {
  const budget = createTemplateBudget();
  const once = '{{range until 6000}}{{print .}}{{end}}';
  assert.match(outcome(once, '{}', budget), /^0123/);
  assert.match(outcome(once, '{}', budget), /timed out/);
});

test('a dictionary cannot contain itself, and deep values are rejected where they are walked', () => {
  assert.match(outcome('{{set . "me" .}}'), /cannot contain itself/);
  assert.match(outcome('{{set . "me" (list (dict "a" .))}}'), /cannot contain itself/);
  assert.match(outcome('{{set . "__proto__" .}}'), /cannot contain itself/);
  const withPrototype = '{{$_ := set . "__proto__" (dict "x" 1)}}{{.}}{{.x}}';
  assert.equal(outcome(withPrototype), 'map[__proto__:map[x:1]]<no value>');
  assert.equal(outcome('{{$d := dict}}{{$_ := set $d "a" 1}}{{$d.a}}'), '1');
  const nested = `${oneList}{{range until 1000}}{{$a = list $a}}{{end}}`;
  for (const walk of ['$a', 'toJSON $a', 'deepEqual $a $a', 'uniq $a', 'print $a']) {
    assert.match(outcome(`${nested}{{${walk}}}`), /nested too deeply/, walk);
  }
  const body = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
  assert.match(outcome('{{.}}', body), /nested too deeply/);
  assert.equal(outcome(`{{.a${'.a'.repeat(9_000)} | len}}`, body), '1');
});

test('large numbers, broken texts and long quotes are rejected or shown, not internal errors', () => {
  assert.match(outcome('{{untilStep 1152921504606846976 1152921504606846979 1}}'), /6978\]$/);
  assert.match(outcome('{{randInt 0 9223372036854775807}}'), /invalid argument/);
  assert.match(outcome(`{{${'9'.repeat(30_000)}}}`), /integer overflow/);
  assert.match(
    outcome(`{{$t := now}}{{range 1500}}{{$t = dateModify "2500000h" $t}}{{end}}`),
    /range/,
  );
  assert.equal(outcome(String.raw`{{urlquery .x}}`, String.raw`{"x":"\ud800"}`), '%EF%BF%BD');
  assert.equal(outcome('{{base (print (repeat 9999 "/") "a")}}'), 'a');
  assert.equal(
    outcome('{{clean "/a/./b/../../../c//"}} {{clean "../a/.."}} {{clean ""}}'),
    '/c .. .',
  );
  assert.match(outcome(`{{'"${String.raw`\"`.repeat(16_000)}'}}`), /could not parse/);
});

test('a search of a pattern charges the characters that it reads', () => {
  const spent = (pattern: string, length: number): number => {
    const budget = createTemplateBudget(Infinity);
    callTemplateFunction(budget, 'regexFindAll', [pattern, 'a '.repeat(length / 2), -1n]);
    return budget.spent;
  };
  // Each match of this pattern reads the rest of the text.
  assert.ok(spent('(?:.*b|a)', 2_000) > 3 * spent('(?:.*b|a)', 1_000));
  assert.ok(spent(String.raw`\s+`, 2_000) < 3 * spent(String.raw`\s+`, 1_000));
});

const shapes = [
  'a',
  '/',
  '=',
  '7',
  '<',
  '\n',
  'a/../',
  '%999d ',
  '\ud800',
  '(a|aa)*',
  '[',
  'MST ',
  '{"a":[',
  '\\"',
];
const doubled = (depth: number): TemplateValue =>
  Array.from({ length: depth }).reduce<TemplateValue>((value) => [value, value], 'x');
const wholes = [0n, 1n, -1n, 3n, 99n, 10_000n, 2n ** 60n, 2n ** 60n + 900n, -(2n ** 63n)];
const numbersOf2000 = Array.from({ length: 2_000 }, (_, at) => BigInt(at));
const scalars = [0, -1.5, Number.NaN, 1e308, true, false, null, undefined];
const values: readonly TemplateValue[] = [
  ...shapes.flatMap((text) => [text, times(40, text), times(4_000, text)]),
  ...wholes,
  ...scalars,
  new TemplateTime(8.64e15),
  [],
  ['b', 'a'],
  doubled(9),
  doubled(40),
  numbersOf2000,
  {},
  { a: doubled(9), host: '\ud800', path: '\ud800' },
  { a: { a: 'x' } },
];

const copied = (value: TemplateValue): TemplateValue => (isDict(value) ? { ...value } : value);

/** The characters, items and keys of a value, without what is in them. */
function ownSize(value: TemplateValue): number {
  if (typeof value === 'string') return value.length;
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
}

test('each function charges what it makes, and fails with a problem of templates only', () => {
  // Numbers of values, because the values themselves are too long to be shown.
  const numbers = fc.array(fc.nat({ max: values.length - 1 }), { maxLength: 4 });
  for (const name of templateFunctionNames) {
    fc.assert(
      fc.property(numbers, (places) => {
        // Dictionaries are copied because functions change them.
        const given = places.map((at) => copied(values[at]));
        const budget = createTemplateBudget();
        try {
          const result = callTemplateFunction(budget, name, given);
          // An argument, or a part of it, is not made.
          const parts = given.flatMap((value) =>
            Array.isArray(value) ? [value, ...value] : [value],
          );
          if (parts.includes(result)) return;
          const [made, paid] = [ownSize(result), budget.spent];
          assert.ok(made <= 200 + 8 * paid, `${name} made ${made} for ${paid}`);
        } catch (error) {
          if (!(error instanceof TemplateProblem)) throw error;
        }
      }),
      { numRuns: propertyRuns(200) },
    );
  }
});

test('random templates end within the budget, or with the answer to a bad request', () => {
  const name = fc.constantFrom(...templateFunctionNames);
  const term = fc.constantFrom(
    '$a',
    '$b',
    '.',
    '.s',
    '.l',
    '0',
    '1',
    '3',
    '"a"',
    '"a*"',
    '"k"',
    '(now)',
  );
  const call = fc
    .tuple(name, fc.array(term, { maxLength: 4 }))
    .map(([called, terms]) => [called, ...terms].join(' '));
  const variable = fc.constantFrom('$a', '$b');
  const change = fc.oneof(
    fc.tuple(variable, call).map(([to, made]) => `{{${to} = ${made}}}`),
    fc.constantFrom(
      '{{$a = list $a $a $b}}',
      '{{$b = print $a $b}}',
      '{{$a = dict "k" $a "l" $b}}',
      '{{$_ := set . "k" $a}}',
      '{{$b = repeat 90 (toString $b)}}',
    ),
  );
  const looped = fc
    .tuple(fc.constantFrom('until 30', '.l', '$a', '100000'), fc.array(change, { maxLength: 3 }))
    .map(([over, inner]) => `{{range ${over}}}${inner.join('')}{{end}}`);
  const last = call.map((made) => `{{${made}}}`);
  const statements = fc.array(fc.oneof(change, looped), { maxLength: 8 });
  const body = JSON.stringify({ s: 'ab '.repeat(300), l: [{ k: 1 }, 'x', ['y']] });
  fc.assert(
    fc.property(statements, last, (changes, end) => {
      outcome(`{{$a := list 1 "a"}}{{$b := "b"}}${changes.join('')}${end}`, body);
    }),
    { numRuns: propertyRuns(2_000) },
  );
});
