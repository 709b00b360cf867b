import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closest } from './closest.ts';

test('finds the similar option, and nothing if no option is similar', () => {
  const commands = ['lint', 'new', 'tour', 'completion'];
  for (const [typed, meant] of [
    ['lnit', 'lint'],
    ['LINT', 'lint'],
    ['tuor', 'tour'],
    ['completions', 'completion'],
    ['nwe', 'new'],
    ['deploy', undefined],
    ['', undefined],
  ] as const) {
    assert.equal(closest(typed, commands), meant, typed);
  }
});

test('prefers the more similar of two options', () => {
  assert.equal(closest('alerts', ['alarm', 'alert']), 'alert');
});
