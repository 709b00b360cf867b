// What goes: ended jobs, and what has no effect any more. A job leaves a marker behind, so that all
// processes learn of it; markers go when everybody has had the time to see them.

import type { TaskRef } from '../../../tasks/task-job.ts';
import { isTerminal } from '../../../tasks/task-job.ts';
import type { TaskBucket } from './bucket.ts';
import type { TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import type { TaskOrphans } from './orphans.ts';
import type { TaskRows } from './rows.ts';
import type { TaskSlots } from './slots.ts';

export interface TaskUpkeep {
  remove(refs: readonly TaskRef[]): Promise<number>;
  tidy(nowMs: number): Promise<void>;
}

const markerMs = 600_000;
/** At once; the next sweep takes the rest. */
const erasedMax = 1_000;

export function createTaskUpkeep(parts: {
  readonly bucket: TaskBucket;
  readonly rows: TaskRows;
  readonly index: TaskIndex;
  readonly slots: TaskSlots;
  readonly orphans: TaskOrphans;
}): TaskUpkeep {
  const { bucket, rows, index, slots, orphans } = parts;

  return {
    async remove(refs) {
      const found = await rows.read(refs.map(({ id }) => id));
      const ended = found.flatMap(({ row }) =>
        row !== undefined && isTerminal(row.head.state) ? [row] : [],
      );
      const writes = ended.map(({ head, seq }) => ({
        key: taskKeys.job(head.id),
        data: '',
        expected: seq,
      }));
      const seqs = await bucket.write(writes);
      const gone = ended.filter((_, at) => seqs[at] !== undefined);
      for (const [at, { key }] of writes.entries()) {
        const seq = seqs[at];
        if (seq !== undefined) index.apply(key, seq, '');
      }
      await bucket.erase(gone.flatMap(({ values }) => values.map(({ seq }) => seq)));
      return gone.length;
    },

    async tidy(nowMs) {
      const going: { readonly key: string; readonly seq: number }[] = [];
      for (const [key, { value, seq }] of index.dedupes) {
        if (value.untilMs <= nowMs) going.push({ key, seq });
      }
      for (const [key, { value, seq }] of index.rates) {
        if (value <= nowMs) going.push({ key, seq });
      }
      going.push(...(await slots.unused()));
      for (const [key, marker] of index.markers) {
        marker.sinceMs ??= nowMs;
        if (nowMs - marker.sinceMs >= markerMs) going.push({ key, seq: marker.seq });
      }
      const some = going.slice(0, erasedMax);
      await bucket.erase(some.map(({ seq }) => seq));
      for (const { key } of some) {
        index.forget(key);
        index.markers.delete(key);
      }
      await orphans.tidy(nowMs);
    },
  };
}
