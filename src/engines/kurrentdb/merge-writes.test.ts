import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StreamWrite } from '../../store/store-engine.ts';
import { mergeWrites } from './merge-writes.ts';

let ids = 0;
function write(stream: string, expected: ExpectedRevision, count: number): StreamWrite {
  const rows = Array.from({ length: count }, () => {
    ids += 1;
    return { eventId: `e${ids}`, type: 't', tenant: '', payload: '1', meta: '{}' };
  });
  return { stream, expected, rows };
}

const at = (revision: number) => ({
  streamState: async () => ({ revision, truncateBefore: 0, tombstoned: false }),
});
const unusedStates = { streamState: () => assert.fail('the state is not needed') };

test('a stream with one write is unchanged', async () => {
  const writes = [write('a', 'none', 2), write('b', 4, 1)];
  const merged = await mergeWrites(writes, unusedStates);
  assert.ok(merged.kind === 'merged');
  assert.deepEqual(
    merged.streams.map(({ stream, expected, parts }) => ({ stream, expected, parts })),
    [
      { stream: 'a', expected: 'none', parts: [{ index: 0, end: 2 }] },
      { stream: 'b', expected: 4, parts: [{ index: 1, end: 1 }] },
    ],
  );
});

test('merges several writes to a stream and records the index of each write', async () => {
  const writes = [write('a', 'any', 2), write('b', 'any', 1), write('a', 'exists', 3)];
  const merged = await mergeWrites(writes, unusedStates);
  assert.ok(merged.kind === 'merged');
  const [a] = merged.streams;
  assert.deepEqual(a?.rows, [...(writes[0]?.rows ?? []), ...(writes[2]?.rows ?? [])]);
  assert.deepEqual(a?.parts, [
    { index: 0, end: 2 },
    { index: 2, end: 5 },
  ]);
});

test('the expectation of a later write is checked, and the stream is pinned to the checked revision', async () => {
  const merged = await mergeWrites([write('a', 'any', 2), write('a', 6, 1)], at(4));
  assert.ok(merged.kind === 'merged');
  assert.equal(merged.streams[0]?.expected, 4);
});

test('a failed expectation of a later write is a conflict at its index', async () => {
  assert.deepEqual(await mergeWrites([write('a', 'none', 2), write('a', 'none', 1)], at(-1)), {
    kind: 'rejected',
    index: 1,
    outcome: { kind: 'conflict', actual: 1 },
  });
});
