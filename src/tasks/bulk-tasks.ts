// One deed for all jobs of a query, page by page, telling how far it is. Broken off, what was done stays done, and
// the same call again goes over what is left.

import { aborted } from '../foundation/clock.ts';
import { toFilter } from './check-task.ts';
import type { TaskEngine } from './task-engine.ts';
import { taskLimits as limits } from './task-limits.ts';
import type { BulkOptions, BulkOutcome, TaskQuery } from './tasks.ts';

export async function bulkTasks(
  engine: Pick<TaskEngine, 'list' | 'counts'>,
  query: TaskQuery,
  { onProgress, signal }: BulkOptions,
  one: (id: string) => Promise<boolean>,
): Promise<BulkOutcome> {
  const filter = toFilter(query);
  const matching = onProgress === undefined ? undefined : await matchingOf(engine, query);
  const total = { changed: 0, skipped: 0 };
  for (let cursor: string | undefined; ;) {
    if (signal?.aborted === true) throw aborted(signal);
    const page = await engine.list(filter, { cursor, limit: limits.batchMax });
    for (const isChanged of await Promise.all(page.tasks.map(({ head }) => one(head.id)))) {
      if (isChanged) total.changed += 1;
      else total.skipped += 1;
    }
    onProgress?.({ ...total, matching });
    if (page.cursor === undefined) return total;
    cursor = page.cursor;
  }
}

/** What engines count anyway; whoever asks for more than type and state is not told how many there are. */
async function matchingOf(
  engine: Pick<TaskEngine, 'counts'>,
  { type, state, ...more }: TaskQuery,
): Promise<number | undefined> {
  if (Object.values(more).some((value) => value !== undefined)) return undefined;
  const states = typeof state === 'string' ? [state] : state;
  let sum = 0;
  for (const each of await engine.counts()) {
    if (type !== undefined && each.type !== type) continue;
    for (const [name, count] of Object.entries(each.states)) {
      if (states === undefined || states.some((wanted) => wanted === name)) sum += count;
    }
  }
  return sum;
}
