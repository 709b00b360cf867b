// Deletes ended jobs, expired keys and orphaned values. A deleted job leaves a marker, from which all processes learn of
// the deletion; markers are deleted later.

import type { TaskEngine } from '../../../tasks/task-engine.ts';
import { isTerminal } from '../../../tasks/task-job.ts';
import type { Bucket } from '../connection/bucket.ts';
import type { TaskIndex } from './task-index.ts';
import { idOfValue, taskKeys } from './keys.ts';
import type { TaskRows } from './rows.ts';
import type { TaskSlots } from './slots.ts';

const markerMs = 600_000;
/** The maximum number of deletions per sweep; the next sweep continues. */
const eraseMax = 1_000;

export function createTaskUpkeep(parts: {
  readonly bucket: Bucket;
  readonly rows: TaskRows;
  readonly index: TaskIndex;
  readonly slots: TaskSlots;
}): Pick<TaskEngine, 'remove' | 'tidy'> {
  const { bucket, rows, index, slots } = parts;
  const tidyOrphans = createOrphanSweep(bucket, rows);

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
      const written = await rows.writeKeys(writes);
      const removed = ended.filter((_, at) => written[at]);
      await bucket.erase(removed.flatMap(({ values }) => values.map(({ seq }) => seq)));
      return removed.length;
    },

    async tidy(nowMs) {
      const expired: { readonly key: string; readonly seq: number }[] = [];
      for (const [key, { value, seq }] of index.dedupes) {
        if (value.untilMs <= nowMs) expired.push({ key, seq });
      }
      for (const [key, { value, seq }] of index.rates) {
        if (value <= nowMs) expired.push({ key, seq });
      }
      expired.push(...(await slots.unused()));
      for (const [key, marker] of index.markers) {
        marker.sinceMs ??= nowMs;
        if (nowMs - marker.sinceMs >= markerMs) expired.push({ key, seq: marker.seq });
      }
      const page = expired.slice(0, eraseMax);
      await bucket.erase(page.map(({ seq }) => seq));
      for (const { key } of page) {
        index.forget(key);
        index.markers.delete(key);
      }
      await tidyOrphans(nowMs);
    },
  };
}

/** The time between two passes over all values. */
const passEveryMs = 3_600_000;
/** How long a process may take to write the job that refers to a value. */
const graceMs = 600_000;
/** The number of value keys that a sweep checks. */
const keysPerSweep = 1_000;
const suspectsMax = 10_000;

/**
 * Deletes values that no job refers to: the process that wrote them died before it wrote the job, or before it deleted
 * them. Each sweep checks some keys; a value is deleted when no job has referred to it for `graceMs`.
 */
function createOrphanSweep(bucket: Bucket, rows: TaskRows): (nowMs: number) => Promise<void> {
  /** The keys that are left of the current page. */
  let keys: readonly string[] = [];
  /** The offset of the next page; undefined: no pass is active. */
  let offset: number | undefined = 0;
  let endedAtMs = Number.NEGATIVE_INFINITY;
  const suspects = new Map<string, { readonly seq: number; readonly sinceMs: number }>();

  async function nextKeys(nowMs: number): Promise<readonly string[]> {
    if (offset === undefined && nowMs - endedAtMs >= passEveryMs) offset = 0;
    if (keys.length === 0 && offset !== undefined) {
      const page = await bucket.keys('value.', offset);
      offset = page === undefined ? undefined : offset + page.length;
      if (page === undefined) endedAtMs = nowMs;
      keys = page ?? [];
    }
    const page = keys.slice(0, keysPerSweep);
    keys = keys.slice(keysPerSweep);
    return page;
  }

  /** The sequences of values that no row refers to. */
  async function findOrphans(candidates: readonly string[]): Promise<ReadonlyMap<string, number>> {
    // Read values before rows: a row that is written in between refers only to values that already existed.
    const values = await bucket.get(candidates);
    const ids = [...new Set(candidates.map(idOfValue))];
    const found = await rows.read(ids);
    const referenced = new Set(
      found.flatMap(({ row }) => (row?.values ?? []).map(({ seq }) => seq)),
    );
    return new Map(
      values.flatMap((value) =>
        value === undefined || referenced.has(value.seq) ? [] : [[value.key, value.seq] as const],
      ),
    );
  }

  return async (nowMs) => {
    const page = await nextKeys(nowMs);
    for (const [key, seq] of page.length === 0 ? [] : await findOrphans(page)) {
      if (suspects.size >= suspectsMax) break;
      if (suspects.get(key)?.seq !== seq) suspects.set(key, { seq, sinceMs: nowMs });
    }
    const due = [...suspects]
      .filter(([, { sinceMs }]) => nowMs - sinceMs >= graceMs)
      .slice(0, keysPerSweep)
      .map(([key]) => key);
    if (due.length === 0) return;
    const orphans = await findOrphans(due);
    await bucket.erase([...orphans.values()]);
    for (const key of due) suspects.delete(key);
  };
}
