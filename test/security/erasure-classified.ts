// The classified names of one place that stores data.

import assert from 'node:assert/strict';
import { sep } from 'node:path';
import { erasureTables, type ErasureRow } from '../../tools/erasure-table.ts';

/** Sorted; no name occurs twice. */
export function classified(place: keyof typeof erasureTables): readonly string[] {
  const rows: readonly ErasureRow[] = erasureTables[place];
  const names = rows.flatMap((row) => row.names).toSorted();
  assert.deepEqual(names, [...new Set(names)]);
  return names;
}

/** Whether a file or folder, relative to `.millrace`, is classified. */
export function classifiedFile(path: string): boolean {
  const known = classified('Files in .millrace');
  const [first = ''] = path.split(sep);
  return known.includes(first.replace(/-(wal|shm)$/, '')) || known.includes(`${first}/…`);
}
