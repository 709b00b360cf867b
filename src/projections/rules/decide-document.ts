// The write rules of all engines: whether a write applies, and how the index entries change.

import type { DocumentEntries, DocumentOutcome, DocumentWrite } from '../read-model-store.ts';

export type DocumentFence = Pick<DocumentWrite, 'stream' | 'revision' | 'isErasure'>;

export function decideDocument(
  kept: DocumentFence | undefined,
  write: DocumentFence,
): DocumentOutcome {
  if (kept === undefined) return 'written';
  if (kept.stream !== write.stream) return 'foreign';
  const isNewer = kept.revision < write.revision;
  const isErased = write.isErasure === true && kept.revision === write.revision;
  return isNewer || isErased ? 'written' : 'stale';
}

export const noEntries: DocumentEntries = { indexes: {}, sets: [], ranges: {} };

export interface EntriesChange {
  readonly removed: DocumentEntries;
  /** Includes unchanged index values, because another document may own them by now. */
  readonly added: DocumentEntries;
}

export function changeEntries(before: DocumentEntries, after: DocumentEntries): EntriesChange {
  return {
    removed: {
      indexes: without(before.indexes, after.indexes),
      sets: before.sets.filter((set) => !after.sets.includes(set)),
      ranges: without(before.ranges, after.ranges),
    },
    added: {
      indexes: after.indexes,
      sets: after.sets.filter((set) => !before.sets.includes(set)),
      ranges: without(after.ranges, before.ranges),
    },
  };
}

function without<Value>(
  entries: Readonly<Record<string, Value>>,
  excluded: Readonly<Record<string, Value>>,
): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(entries).filter(([name, value]) => excluded[name] !== value),
  );
}
