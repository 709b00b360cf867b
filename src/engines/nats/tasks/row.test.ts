import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeRow, encodeRow, inlineFields, splitFields, packFields } from './row.ts';

const head = {
  id: 'email-send.01995b2e-0000-7000-8000-000000000000',
  type: 'email-send',
  tenant: 'acme',
  state: 'running',
  revision: 4,
  fence: 2,
  priority: 5,
  dueAtMs: 1_790_000_000_000,
  concurrencyKey: 'acme|ü',
  failures: 1,
  worker: 'w-1',
  deadlineMs: 1_790_000_060_000,
  cancelAtMs: 0,
  parentId: '',
  labels: ['region=eu'],
  enqueuedAtMs: 1_790_000_000_000,
  claimedAtMs: 1_790_000_000_001,
  updatedAtMs: 1_790_000_000_002,
  endedAtMs: 0,
} as const;

test('decodes a row as it was encoded, whatever its fields contain', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ minLength: 1, unit: 'grapheme' }), fc.string({ unit: 'grapheme' })),
      (given) => {
        const texts = { ...given, plain: 'a\nb' };
        const row = {
          head,
          ...packFields(texts),
          values: [{ seq: 9, names: ['payload'] }],
        };
        const read = decodeRow(head.id, encodeRow(row));
        assert.deepEqual(read, row);
        assert.deepEqual(inlineFields(read), { ...texts });
      },
    ),
  );
});

test('separates large fields, and many small ones together, but never those that lists read', () => {
  const large = 'x'.repeat(20_000);
  const small = { run: '{}', info: '{}', payload: '1' };
  assert.deepEqual(splitFields(small), { inline: small, separate: [] });
  assert.deepEqual(splitFields({ ...small, payload: large }), {
    inline: { run: '{}', info: '{}' },
    separate: [{ payload: large }],
  });
  const steps = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, n) => [`step:${n}`, 'y'.repeat(100)]),
  );
  const { inline, separate } = splitFields({ ...small, ...steps });
  assert.deepEqual(inline, { run: '{}', info: '{}' });
  assert.deepEqual(separate, [{ payload: '1', ...steps }]);
});
