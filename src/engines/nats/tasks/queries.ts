// Queries of jobs: the index finds the ids, the bucket has the content.

import { parseCursor, cursorOf } from '../../../tasks/list-cursor.ts';
import type { TaskEngine, TaskFilter } from '../../../tasks/task-engine.ts';
import { fieldBytes, type StoredTask, type TaskHead } from '../../../tasks/task-job.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import type { IndexedTask, TaskIndex } from './task-index.ts';
import type { TaskRows } from './rows.ts';

export type TaskQueries = Pick<
  TaskEngine,
  'get' | 'heads' | 'list' | 'counts' | 'overdue' | 'dueScheduled' | 'endedBefore'
>;

/** Limits the retries: a missing value means that a newer row replaced the row that was read. */
const triesMax = 10;
/** The jobs that are read at once for a page that is limited in bytes. */
const boundedCount = 4;
const listed: ReadonlySet<string> = new Set(['info', 'run']);

export function createTaskQueries(parts: {
  readonly rows: TaskRows;
  readonly index: TaskIndex;
  readonly sync: () => Promise<void>;
}): TaskQueries {
  const { rows, index, sync } = parts;

  async function load(
    ids: readonly string[],
    names?: ReadonlySet<string>,
  ): Promise<readonly (StoredTask | undefined)[]> {
    const tasks = new Map<string, StoredTask>();
    let left = ids;
    for (let round = 0; round < triesMax && left.length > 0; round += 1) {
      const found = (await rows.read(left)).flatMap(({ row }) => row ?? []);
      const whole = await rows.whole(found, names);
      for (const task of whole) if (task !== undefined) tasks.set(task.head.id, task);
      left = found.flatMap(({ head: { id } }) => (tasks.has(id) ? [] : [id]));
    }
    return ids.map((id) => tasks.get(id));
  }

  async function present(ids: readonly string[]): Promise<readonly StoredTask[]> {
    return (await load(ids)).filter((task) => task !== undefined);
  }

  return {
    get: (refs) => load(refs.map(({ id }) => id)),
    async heads(refs) {
      await sync();
      const known = refs.map(({ id }) => index.find(id));
      const ended = known.filter((task) => task !== undefined && task.row === undefined);
      const read = await rows.read(ended.map((task) => task?.id ?? ''));
      const heads = new Map(
        read.flatMap(({ row }) => (row === undefined ? [] : [[row.head.id, row.head] as const])),
      );
      return known.map((task) => task?.row?.head ?? heads.get(task?.id ?? ''));
    },
    async list(filter, { cursor, limit, bytesMax = Infinity }) {
      const after = cursor === undefined ? undefined : parseCursor(cursor);
      await sync();
      const tasks: StoredTask[] = [];
      let bytes = 0;
      let hasMore = false;
      const candidates = index.newest(after);
      const count = bytesMax === Infinity ? taskLimits.batchMax : boundedCount;
      while (!hasMore) {
        const page = pageOf(candidates, filter, count);
        if (page.length === 0) break;
        for (const task of await load(page, listed)) {
          if (task === undefined || !matches(filter, task.head)) continue;
          hasMore = tasks.length === limit || bytes >= bytesMax;
          if (hasMore) break;
          tasks.push(task);
          bytes += fieldBytes(task.fields);
        }
      }
      const last = tasks.at(-1);
      return { tasks, cursor: hasMore && last !== undefined ? cursorOf(last.head) : undefined };
    },
    async counts() {
      await sync();
      return index.counts();
    },
    async overdue({ nowMs, limit }) {
      await sync();
      const ids: string[] = [];
      for (const id of index.running) {
        const head = index.find(id)?.row?.head;
        if (head !== undefined && isOverdue(head, nowMs)) ids.push(id);
        if (ids.length === limit) break;
      }
      const tasks = await present(ids);
      return tasks.filter(({ head }) => head.state === 'running' && isOverdue(head, nowMs));
    },
    async dueScheduled({ nowMs, limit }) {
      await sync();
      return present(index.pending.dueScheduled(nowMs, limit).map(({ id }) => id));
    },
    async endedBefore({ type, beforeMs, limit }) {
      await sync();
      const refs: { id: string; type: string }[] = [];
      for (const { id, updatedAtMs } of index.endedOf(type)) {
        if (updatedAtMs >= beforeMs || refs.length === limit) break;
        refs.push({ id, type });
      }
      return refs;
    },
  };

  function isOverdue({ deadlineMs, cancelAtMs, worker }: TaskHead, nowMs: number): boolean {
    return (
      deadlineMs <= nowMs ||
      (cancelAtMs > 0 && cancelAtMs <= nowMs) ||
      index.beatOf(worker) <= nowMs
    );
  }
}

/**
 * Returns the ids of the next candidates. The caller filters them again, because some fields of jobs in a terminal state
 * are only in the bucket.
 */
function pageOf(
  candidates: Iterator<IndexedTask>,
  filter: TaskFilter,
  count: number,
): readonly string[] {
  const ids: string[] = [];
  while (ids.length < count) {
    const { value, done } = candidates.next();
    if (done === true) break;
    if (mayMatch(filter, value)) ids.push(value.id);
  }
  return ids;
}

function mayMatch(filter: TaskFilter, task: IndexedTask): boolean {
  const { enqueuedFromMs = 0, enqueuedBeforeMs = Infinity } = filter;
  const { updatedFromMs = 0, updatedBeforeMs = Infinity } = filter;
  return (
    (filter.type === undefined || filter.type === task.type) &&
    (filter.states === undefined || filter.states.includes(task.state)) &&
    task.enqueuedAtMs >= enqueuedFromMs &&
    task.enqueuedAtMs < enqueuedBeforeMs &&
    task.updatedAtMs >= updatedFromMs &&
    task.updatedAtMs < updatedBeforeMs &&
    (task.row === undefined || matchesHead(filter, task.row.head))
  );
}

function matches(filter: TaskFilter, head: TaskHead): boolean {
  return matchesHead(filter, head) && mayMatch(filter, { ...head, seq: 0, row: undefined });
}

function matchesHead({ tenant, parentId, labels = [] }: TaskFilter, head: TaskHead): boolean {
  return (
    (tenant === undefined || tenant === head.tenant) &&
    (parentId === undefined || parentId === head.parentId) &&
    labels.every((label) => head.labels.includes(label))
  );
}
