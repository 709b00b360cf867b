import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted, fieldLines, grouped, printable } from './text.ts';

test('groups the digits of large counts', () => {
  assert.deepEqual([0, 999, 1_000, 1_234_567].map(grouped), ['0', '999', '1,000', '1,234,567']);
});

test('formats a count with a singular or plural noun', () => {
  assert.deepEqual(
    [counted(1, 'delivery', 'deliveries'), counted(2_000, 'event')],
    ['1 delivery', '2,000 events'],
  );
});

test('omits fields without a value', () => {
  const fields = [
    ['id', 'a'],
    ['tenant', undefined],
    ['by', null],
    ['due', new Date(0)],
    ['data', { a: 1 }],
  ] as const;
  assert.equal(
    fieldLines(fields, { width: 6 }),
    'id    a\ndue   1970-01-01T00:00:00.000Z\ndata  {"a":1}\n',
  );
});

test('replaces control characters', () => {
  assert.equal(printable('a\u001b[2J\u009b'), 'a\uFFFD[2J\uFFFD');
});
