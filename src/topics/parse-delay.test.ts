import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseNaturalTime } from './parse-delay.ts';

test('times in English are relative to the clock', () => {
  // A Wednesday, 14:30.
  const now = new Date(2026, 10, 18, 14, 30).getTime();
  const at = (text: string): string | undefined => {
    const found = parseNaturalTime(text, now);
    if (found === undefined) return undefined;
    const date = new Date(found);
    return `${date.getDate()} ${date.getHours()}:${date.getMinutes()}`;
  };
  assert.equal(at('tomorrow, 3:30pm'), '19 15:30');
  assert.equal(at('10am'), '19 10:0');
  assert.equal(at('5pm'), '18 17:0');
  assert.equal(at('friday 9am'), '20 9:0');
  assert.equal(at('in two hours'), '18 16:30');
  assert.equal(at('whenever'), undefined);
});
