import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storageFindings } from './doctor.ts';

test('warns of a nearly full account, and reports nothing for an account without a limit', () => {
  const levels = (storage: number, most: number) =>
    storageFindings({ storage, limits: { max_storage: most } }).map(({ level }) => level);
  assert.deepEqual(levels(79, 100), ['ok']);
  assert.deepEqual(levels(80, 100), ['warning']);
  assert.deepEqual(levels(1_000_000, -1), []);
});
