// Values that no job names: whoever wrote them was killed before the job, or behind the job that took their
// place. They are looked for in passes, some keys with each sweep, and go when nobody has named them for a while.

import type { TaskBucket } from './bucket.ts';
import { idOfValue } from './keys.ts';
import type { TaskRows } from './rows.ts';

export interface TaskOrphans {
  tidy(nowMs: number): Promise<void>;
}

/** From one pass to the next. */
const everyMs = 3_600_000;
/** Whoever writes a value has this long to write the job that names it. */
const graceMs = 600_000;
/** With each sweep. */
const keysAtOnce = 1_000;
const suspectsMax = 10_000;

export function createTaskOrphans({
  bucket,
  rows,
}: {
  readonly bucket: TaskBucket;
  readonly rows: TaskRows;
}): TaskOrphans {
  /** Keys that are still to be looked at in this pass. */
  let keys: readonly string[] = [];
  /** Of the listing; undefined: no pass is under way. */
  let offset: number | undefined = 0;
  let endedAtMs = Number.NEGATIVE_INFINITY;
  const suspects = new Map<string, { readonly seq: number; readonly sinceMs: number }>();

  async function next(nowMs: number): Promise<readonly string[]> {
    if (offset === undefined && nowMs - endedAtMs >= everyMs) offset = 0;
    if (keys.length === 0 && offset !== undefined) {
      const page = await bucket.keys('value.', offset);
      offset = page === undefined ? undefined : offset + page.length;
      if (page === undefined) endedAtMs = nowMs;
      keys = page ?? [];
    }
    const some = keys.slice(0, keysAtOnce);
    keys = keys.slice(keysAtOnce);
    return some;
  }

  /** As they are now: the sequences of those that no row names. */
  async function unnamed(some: readonly string[]): Promise<ReadonlyMap<string, number>> {
    // In this order: a row that was written in between names what was there before.
    const values = await bucket.get(some);
    const ids = [...new Set(some.map(idOfValue))];
    const found = await rows.read(ids);
    const named = new Set(found.flatMap(({ row }) => (row?.values ?? []).map(({ seq }) => seq)));
    return new Map(
      values.flatMap((value) =>
        value === undefined || named.has(value.seq) ? [] : [[value.key, value.seq] as const],
      ),
    );
  }

  return {
    async tidy(nowMs) {
      const some = await next(nowMs);
      for (const [key, seq] of some.length === 0 ? [] : await unnamed(some)) {
        if (suspects.size >= suspectsMax) break;
        if (suspects.get(key)?.seq !== seq) suspects.set(key, { seq, sinceMs: nowMs });
      }
      const old = [...suspects].filter(([, { sinceMs }]) => nowMs - sinceMs >= graceMs);
      if (old.length === 0) return;
      const still = await unnamed(old.slice(0, keysAtOnce).map(([key]) => key));
      await bucket.erase([...still.values()]);
      for (const [key] of old.slice(0, keysAtOnce)) suspects.delete(key);
    },
  };
}
