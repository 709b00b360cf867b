// A bulk action: replays, retries or discards all failures that match a filter, up to a moment. It runs as a job, page by page: the
// failures of a page are stored before they are changed, so a process that is killed loses nothing and repeats nothing.

import type { Task } from '../../tasks/task-record.ts';
import { task, type TaskDefinition } from '../../tasks/task-definition.ts';
import { taskType } from '../../tasks/task-type.ts';
import {
  failureKinds,
  failureSources,
  type Failure,
  type FailurePlatform,
  type FailureSource,
} from './failure-sources.ts';
import { matches, readFailures, type FailureFilter, type Failures } from './failures.ts';

export const bulkActions = ['replay', 'retry', 'discard'] as const;

export interface BulkRequest {
  readonly action: (typeof bulkActions)[number];
  readonly filter: Omit<FailureFilter, 'until'>;
  /** Failures after this time are not changed, ISO 8601. */
  readonly until: string;
}

export interface BulkOrder extends BulkRequest {
  /** How many failures matched when the action was started. */
  readonly matched: number;
  readonly by: string;
  readonly reason: string;
}

export interface BulkItem {
  readonly source: FailureSource;
  readonly id: string;
  /** `unchanged`: it was no longer failed, or this action changed it right before its process died. */
  readonly outcome: 'waiting' | 'done' | 'unchanged';
}

const pageSize = 250;

export const bulkType = taskType('millrace-bulk', { workers: 1, stepTimeoutMs: 300_000 });

/** The failures that the action would change. */
export async function matchFailures(
  platform: FailurePlatform,
  { action, filter, until }: BulkRequest,
  signal?: AbortSignal,
): Promise<Failures> {
  const { items, isComplete } = await readFailures(platform, { ...filter, until }, signal);
  return { items: items.filter((each) => isChangeable(action, each)), isComplete };
}

function isChangeable(action: BulkRequest['action'], { source, isFinal }: Failure): boolean {
  const kind = failureKinds[source];
  if (kind[action] === undefined) return false;
  if (action === 'retry') return !isFinal;
  return isFinal || (action === 'discard' && kind.retry !== undefined);
}

type Selected = readonly [source: FailureSource, id: string];

export function bulkTask(platform: FailurePlatform): TaskDefinition {
  return task(bulkType.name, async (context) => {
    const order = context.payload as BulkOrder;
    const seen = new Set<string>();
    let done = 0;
    for (let page = 1; seen.size < order.matched; page += 1) {
      const limit = Math.min(pageSize, order.matched - seen.size);
      const items = await context.step(`select-${page}`, () =>
        select(platform, order, { seen, limit }),
      );
      if (items.length === 0) break;
      for (const item of items) seen.add(keyOf(item));
      const changed = await context.step(`change-${page}`, () => change(platform, order, items));
      done += changed.filter((isChanged) => isChanged).length;
      await context.progress(Math.round((100 * seen.size) / order.matched), `${done} changed`);
    }
    return { done, unchanged: seen.size - done };
  });
}

const keyOf = ([source, id]: Selected): string => `${source} ${id}`;

async function select(
  platform: FailurePlatform,
  { action, filter, until }: BulkOrder,
  { seen, limit }: { readonly seen: ReadonlySet<string>; readonly limit: number },
): Promise<readonly Selected[]> {
  const found: Selected[] = [];
  for (const source of filter.source === undefined ? failureSources : [filter.source]) {
    for await (const page of failureKinds[source].read(platform, filter)) {
      for (const failure of page) {
        const item = [source, failure.id] as const;
        if (!isChangeable(action, failure) || !matches(failure, { ...filter, until })) continue;
        if (!seen.has(keyOf(item))) found.push(item);
        if (found.length === limit) return found;
      }
    }
  }
  return found;
}

/** Whether each item was changed. */
async function change(
  platform: FailurePlatform,
  { action, until, by, reason }: BulkOrder,
  items: readonly Selected[],
): Promise<readonly boolean[]> {
  const changed = new Set<string>();
  for (const [source, all] of Map.groupBy(items, ([each]) => each)) {
    const ids = all.map(([, id]) => id);
    const done = await failureKinds[source][action]?.(platform, { ids, until, by, reason });
    for (const id of done ?? []) changed.add(keyOf([source, id]));
  }
  return items.map((item) => changed.has(keyOf(item)));
}

/** The outcome of each failure so far, in the order of the pages. */
export function bulkItems({ steps }: Task): readonly BulkItem[] {
  const results = new Map(steps.map(({ name, result }) => [name, result]));
  return steps.flatMap(({ name, result }): readonly BulkItem[] => {
    const [, page] = /^select-(\d+)$/.exec(name) ?? [];
    if (page === undefined || !Array.isArray(result)) return [];
    const changed = (results.get(`change-${page}`) ?? []) as readonly boolean[];
    return (result as readonly Selected[]).map(([source, id], at) => ({
      source,
      id,
      outcome: changed[at] === undefined ? 'waiting' : changed[at] ? 'done' : 'unchanged',
    }));
  });
}
