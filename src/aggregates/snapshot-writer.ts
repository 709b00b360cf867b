// Writes snapshots behind the commands' back: never slower, never failed because of one.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { withinTime } from '../foundation/within-time.ts';
import { snapshotLimits } from './encode-state.ts';
import type { Snapshot, SnapshotStore } from './snapshot-store.ts';

export interface SnapshotWriter {
  /** Returns before anything is written; of several that wait for one stream the last is written. */
  schedule(stream: string, take: () => Snapshot): void;
  /** True once everything scheduled so far was tried; false when the deadline came first. */
  flush(deadlineMs: number): Promise<boolean>;
}

export function createSnapshotWriter(
  snapshots: SnapshotStore,
  { clock, observer }: { readonly clock: Clock; readonly observer: Observer },
): SnapshotWriter {
  const waiting = new Map<string, () => Snapshot>();
  const writers = new Set<Promise<void>>();
  let looking = 0;

  const writeAll = async (): Promise<void> => {
    for (let next = takeOne(); next !== undefined; next = takeOne()) await write(...next);
    // In the same breath as the last look, so that nothing is scheduled between the two and stays.
    looking -= 1;
  };

  const takeOne = (): readonly [string, () => Snapshot] | undefined => {
    for (const entry of waiting) {
      waiting.delete(entry[0]);
      return entry;
    }
    return undefined;
  };

  const write = async (stream: string, take: () => Snapshot): Promise<void> => {
    try {
      await snapshots.save(stream, take());
      observer.count?.('snapshots_taken_total', { outcome: 'saved' });
    } catch (err) {
      observer.count?.('snapshots_taken_total', { outcome: 'failed' });
      observer.log?.warn({ stream, err }, 'snapshot not taken');
    }
  };

  return {
    schedule(stream, take) {
      if (waiting.size >= snapshotLimits.waitingMax && !waiting.has(stream)) {
        observer.count?.('snapshots_taken_total', { outcome: 'dropped' });
        return;
      }
      waiting.set(stream, take);
      if (looking >= snapshotLimits.writersMax) return;
      looking += 1;
      const writer = writeAll().finally(() => writers.delete(writer));
      writers.add(writer);
    },

    async flush(deadlineMs) {
      const written = (async () => {
        while (writers.size > 0) await Promise.all(writers);
        return true;
      })();
      return withinTime(written, { ms: deadlineMs, late: () => false, clock });
    },
  };
}
