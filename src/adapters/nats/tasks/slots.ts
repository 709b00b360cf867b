// The places of a concurrency key. A job that was claimed takes one before it is handed out; a place is free
// when its holder does not run under the fence that is written there, which no job ever does again.

import type { TaskBucket } from './bucket.ts';
import type { TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import type { PlacedRow } from './row.ts';
import type { TaskRows } from './rows.ts';

export interface TaskSlots {
  /** False: all places of its key are taken. */
  take(row: PlacedRow, places: number): Promise<boolean>;
  /** Sequences of those that nobody holds. */
  unused(): Promise<readonly { readonly key: string; readonly seq: number }[]>;
}

const roundsMax = 100;

export function createTaskSlots(parts: {
  readonly bucket: TaskBucket;
  readonly rows: TaskRows;
  readonly index: TaskIndex;
}): TaskSlots {
  const { bucket, rows, index } = parts;

  async function isHeld(holder: string): Promise<boolean> {
    const [id = '', fence = ''] = holder.split(' ');
    const known = index.find(id)?.row?.head;
    if (known?.state === 'running' && known.fence === Number(fence)) return true;
    // The index may be behind: the bucket knows.
    const [found] = await rows.read([id]);
    const head = found?.row?.head;
    return head?.state === 'running' && head.fence === Number(fence);
  }

  async function takeOne(key: string, holder: string): Promise<boolean> {
    for (let round = 0; round < roundsMax; round += 1) {
      const there = index.slots.get(key);
      if (there !== undefined && (await isHeld(there.value))) return false;
      const [seq] = await bucket.write([{ key, data: holder, expected: there?.seq ?? 0 }]);
      if (seq !== undefined) {
        index.apply(key, seq, holder);
        return true;
      }
      const [found] = await bucket.get([key]);
      if (found === undefined) index.forget(key);
      else index.apply(key, found.seq, found.text);
    }
    return false;
  }

  return {
    async take({ head }, places) {
      const holder = `${head.id} ${head.fence}`;
      for (let at = 0; at < places; at += 1) {
        if (await takeOne(taskKeys.slot(head.type, head.concurrencyKey, at), holder)) return true;
      }
      return false;
    },
    async unused() {
      const free: { key: string; seq: number }[] = [];
      for (const [key, { value, seq }] of index.slots) {
        if (!(await isHeld(value))) free.push({ key, seq });
      }
      return free;
    },
  };
}
