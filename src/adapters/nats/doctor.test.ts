import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storageFindings } from './doctor.ts';

test('an account that is nearly full is a warning, and one without a limit says nothing', () => {
  const levels = (storage: number, most: number) =>
    storageFindings({ storage, limits: { max_storage: most } }).map(({ level }) => level);
  assert.deepEqual(levels(79, 100), ['ok']);
  assert.deepEqual(levels(80, 100), ['warning']);
  assert.deepEqual(levels(1_000_000, -1), []);
});
