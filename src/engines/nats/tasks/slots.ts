// The slots of a concurrency key. A claimed job takes a slot before a worker gets the job. A slot stores the job and its
// fence, and is free when the job does not run under that fence; fences are never reused.

import type { TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import type { StoredTaskRow } from './row.ts';
import type { TaskRows } from './rows.ts';

export interface TaskSlots {
  /** Returns false if all slots of the key are taken. */
  take(row: StoredTaskRow, slotCount: number): Promise<boolean>;
  /** Slots that no running job holds. */
  unused(): Promise<readonly { readonly key: string; readonly seq: number }[]>;
}

const roundsMax = 100;

export function createTaskSlots(rows: TaskRows, index: TaskIndex): TaskSlots {
  async function isRunning(holder: string): Promise<boolean> {
    const [id = '', fence = ''] = holder.split(' ');
    const known = index.find(id)?.row?.head;
    if (known?.state === 'running' && known.fence === Number(fence)) return true;
    // The index may be outdated, the bucket is not.
    const [found] = await rows.read([id]);
    const head = found?.row?.head;
    return head?.state === 'running' && head.fence === Number(fence);
  }

  async function takeOne(key: string, holder: string): Promise<boolean> {
    for (let round = 0; round < roundsMax; round += 1) {
      const slot = index.slots.get(key);
      if (slot?.value === holder) return true;
      if (slot !== undefined && (await isRunning(slot.value))) return false;
      const [isTaken] = await rows.writeKeys([{ key, data: holder, expected: slot?.seq ?? 0 }]);
      if (isTaken === true) return true;
    }
    return false;
  }

  return {
    async take({ head }, slotCount) {
      const holder = `${head.id} ${head.fence}`;
      for (let at = 0; at < slotCount; at += 1) {
        if (await takeOne(taskKeys.slot(head.type, head.concurrencyKey, at), holder)) return true;
      }
      return false;
    },
    async unused() {
      const free: { key: string; seq: number }[] = [];
      for (const [key, { value, seq }] of index.slots) {
        if (!(await isRunning(value))) free.push({ key, seq });
      }
      return free;
    },
  };
}
