// Which jobs a list shows, and in which order: for engines that look at heads one by one.

import type { TaskFilter } from './task-engine.ts';
import type { TaskHead } from './task-job.ts';

export function matchesFilter(filter: TaskFilter, head: TaskHead): boolean {
  const { enqueuedFromMs = 0, enqueuedBeforeMs = Infinity } = filter;
  const { updatedFromMs = 0, updatedBeforeMs = Infinity, labels = [] } = filter;
  return (
    (filter.type === undefined || filter.type === head.type) &&
    (filter.states === undefined || filter.states.includes(head.state)) &&
    (filter.tenant === undefined || filter.tenant === head.tenant) &&
    (filter.parentId === undefined || filter.parentId === head.parentId) &&
    labels.every((label) => head.labels.includes(label)) &&
    head.enqueuedAtMs >= enqueuedFromMs &&
    head.enqueuedAtMs < enqueuedBeforeMs &&
    head.updatedAtMs >= updatedFromMs &&
    head.updatedAtMs < updatedBeforeMs
  );
}

export function newestFirst(a: TaskHead, b: TaskHead): number {
  return b.enqueuedAtMs - a.enqueuedAtMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

export function isBehind(
  head: TaskHead,
  { enqueuedAtMs, id }: { readonly enqueuedAtMs: number; readonly id: string },
): boolean {
  return head.enqueuedAtMs < enqueuedAtMs || (head.enqueuedAtMs === enqueuedAtMs && head.id < id);
}
