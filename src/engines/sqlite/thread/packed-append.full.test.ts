import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { WriteOutcome } from '../../../store/store-engine.ts';
import { propertyRuns } from '../../../testing/property-runs.ts';
import { packAppend, packOutcome, unpackAppends, unpackOutcome } from './packed-append.ts';
import { codePoint } from '../../../testing/support/code-point.ts';

test('unpacks joined appends as they were packed', () => {
  const text = fc.string({ unit: codePoint });
  const row = fc.record({ eventId: text, type: text, tenant: text, payload: text, meta: text });
  const expected = fc.oneof(fc.nat(), fc.constantFrom('none' as const, 'any', 'exists'));
  const follows = fc.string({ unit: codePoint, minLength: 1 });
  const write = fc.record(
    { stream: text, expected, rows: fc.array(row), follows },
    { requiredKeys: ['stream', 'expected', 'rows'] },
  );
  const append = fc.record({ id: fc.nat(), nowMs: fc.nat(), write });
  fc.assert(
    fc.property(fc.array(append), (appends) => {
      const back = unpackAppends(appends.map(packAppend).join(''));
      assert.equal(JSON.stringify(back), JSON.stringify(appends));
    }),
    { numRuns: propertyRuns(100) },
  );
});

test('unpacks outcomes as they were packed', () => {
  const outcomes: WriteOutcome[] = [
    { kind: 'appended', revision: 5, sequence: 2 ** 50 },
    { kind: 'duplicate', revision: 0, sequence: 1 },
    { kind: 'conflict', actual: -1 },
    { kind: 'deleted' },
  ];
  const packed: number[] = [];
  for (const [id, outcome] of outcomes.entries()) packOutcome(id, outcome, packed);
  const back = outcomes.map((_outcome, at) => unpackOutcome(packed, at * 4));
  assert.deepEqual(back, outcomes);
});
