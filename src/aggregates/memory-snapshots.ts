// Snapshots in memory, for unit tests: as text, so that they forget what JSON forgets.

import type { Snapshot, SnapshotStore } from './snapshot-store.ts';

/**
 * A snapshot store that lives and dies with the process.
 *
 * @example
 * import { memorySnapshots } from 'millrace/aggregates';
 *
 * const snapshots = memorySnapshots();
 * const takenAt = new Date().toISOString();
 * await snapshots.save('banking.account.v1-core-a1', {
 *   revision: 99,
 *   eventId: '0199b5a0-0000-7000-8000-000000000000',
 *   state: { balance: 12 },
 *   codeVersion: 1,
 *   takenAt,
 * });
 */
export function memorySnapshots(): SnapshotStore {
  const byStream = new Map<string, { readonly revision: number; readonly json: string }>();
  return {
    async load(stream) {
      const found = byStream.get(stream);
      return found === undefined ? undefined : (JSON.parse(found.json) as Snapshot);
    },
    async save(stream, snapshot) {
      const { revision } = snapshot;
      if (revision < (byStream.get(stream)?.revision ?? 0)) return;
      byStream.set(stream, { revision, json: JSON.stringify(snapshot) });
    },
  };
}
