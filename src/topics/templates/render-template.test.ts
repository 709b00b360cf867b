import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { renderTemplate } from './render-template.ts';
import { propertyRuns } from '../../testing/property-runs.ts';

test('a template with too many steps or too much output is rejected', () => {
  const long = JSON.stringify({ l: Array.from({ length: 700 }, () => 1) });
  const nested = '{{range .l}}{{range $.l}}{{range $.l}}x{{end}}{{end}}{{end}}';
  assert.throws(() => renderTemplate(nested, long, 'x'), /timed out/);
  assert.throws(() => renderTemplate('{{printf "%99999s" "x"}}', '{}', 'x'), /too large/);
  assert.throws(() => renderTemplate('{{repeat 9999999 "x"}}', '{}', 'x'), /exceeds limit/);
  // A layout that makes a backtracking regular expression slow is parsed in linear time.
  const digits = `{{toDate "${'2'.repeat(60)}" "${'1'.repeat(90)}x" | unixEpoch}}`;
  assert.equal(renderTemplate(digits, '{}', 'x'), '-62135596800');
  const pattern = `{{regexMatch "(a+)+$" "${'a'.repeat(60)}b"}}`;
  assert.equal(renderTemplate(pattern, '{}', 'x'), 'false');
  fc.assert(
    fc.property(fc.string({ maxLength: 30 }), fc.jsonValue(), (text, data) => {
      try {
        renderTemplate(`{{${text}}} {{`, JSON.stringify(data), 'x');
      } catch (error) {
        assert.match(String(error), /invalid request/);
      }
    }),
    { numRuns: propertyRuns(500) },
  );
});

test('and and or evaluate no argument after the one that decides', () => {
  const render = (template: string): string => renderTemplate(template, '{"a":null}', 'x');
  assert.equal(render('{{or "x" (fail "evaluated")}}'), 'x');
  assert.equal(render('{{if and .a .a.b}}yes{{else}}no{{end}}'), 'no');
  assert.equal(render('{{"y" | or ""}}{{"y" | and "z"}}{{"y" | or "x"}}'), 'yyx');
  assert.throws(() => render('{{or "" (fail "evaluated")}}'), /evaluated/);
  assert.throws(() => render('{{and}}'), /wrong number of args for and/);
});
