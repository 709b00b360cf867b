// The classified names of one place that stores data.

import assert from 'node:assert/strict';
import { erasureTables, type ErasureRow } from '../../tools/erasure-table.ts';

/** Sorted; no name occurs twice. */
export function classified(place: keyof typeof erasureTables): readonly string[] {
  const rows: readonly ErasureRow[] = erasureTables[place];
  const names = rows.flatMap((row) => row.names).toSorted();
  assert.deepEqual(names, [...new Set(names)]);
  return names;
}
