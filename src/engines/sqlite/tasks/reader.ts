// Reads of tasks, on the calling thread.

import type { DatabaseSync } from 'node:sqlite';
import { cursorOf, parseCursor } from '../../../tasks/list-cursor.ts';
import type { TaskEngine, TaskFilter, TypeMode } from '../../../tasks/task-engine.ts';
import {
  fieldBytes,
  taskStates,
  type StoredTask,
  type TaskState,
} from '../../../tasks/task-job.ts';
import { createSqlQuery, type SqlRow } from '../thread/protocol.ts';
import { headColumns, taskLane, toHead, toStoredTask } from './tables.ts';

type Reads =
  | 'get'
  | 'heads'
  | 'list'
  | 'counts'
  | 'workers'
  | 'overdue'
  | 'dueScheduled'
  | 'endedBefore'
  | 'modes';

/** The reads of a task engine, without a promise. */
type TaskReads = {
  readonly [Name in Reads]: (
    ...parameters: Parameters<TaskEngine[Name]>
  ) => Awaited<ReturnType<TaskEngine[Name]>>;
};

export interface TaskReader extends TaskReads {
  dataVersion(): number;
  /** When a claim of these types can find a job: 0 means now, undefined never. */
  dueAtMs(types: readonly string[], nowMs: number): number | undefined;
  close(): void;
}

type Value = string | number;

export function createTaskReader(database: DatabaseSync): TaskReader {
  const { all, each, one } = createSqlQuery(database);
  const whole = (row: SqlRow): StoredTask =>
    toStoredTask(
      row,
      all('select name, value from task_fields where task = ?', Number(row['seq'])),
    );

  return {
    dataVersion: () => Number(one('pragma data_version')?.['data_version']),
    dueAtMs(types, nowMs) {
      let earliest: number | undefined;
      for (const type of types) {
        const paused = one(`select 1 from task_modes where type = ? and mode = 'paused'`, type);
        if (paused !== undefined) continue;
        const { ready, later } = taskLane;
        const claimable = one(
          `select 1 from tasks where lane = ${ready} and type = ? limit 1`,
          type,
        );
        if (claimable !== undefined) return 0;
        const next = `select min(due_at_ms) as due from tasks where lane = ${later} and type = ?`;
        const due = one(next, type)?.['due'] ?? null;
        if (due === null) continue;
        if (Number(due) <= nowMs) return 0;
        earliest = Math.min(earliest ?? Infinity, Number(due));
      }
      return earliest;
    },
    get: (refs) =>
      refs.map(({ id }) => {
        const row = one('select * from tasks where id = ?', id);
        return row === undefined ? undefined : whole(row);
      }),
    heads: (refs) =>
      refs.map(({ id }) => {
        const row = one(`select ${headColumns} from tasks where id = ?`, id);
        return row === undefined ? undefined : toHead(row);
      }),
    list(filter, { cursor, limit, bytesMax = Infinity }) {
      const { where, values } = conditions(filter, cursor);
      const sql = `select * from tasks where ${where} order by enqueued_at_ms desc, id desc limit ?`;
      const tasks: StoredTask[] = [];
      let bytes = 0;
      let hasMore = false;
      for (const row of each(sql, ...values, limit + 1)) {
        hasMore = tasks.length === limit || bytes >= bytesMax;
        if (hasMore) break;
        const task = toStoredTask(row, []);
        tasks.push(task);
        bytes += fieldBytes(task.fields);
      }
      const last = tasks.at(-1)?.head;
      return { tasks, cursor: hasMore && last ? cursorOf(last) : undefined };
    },
    counts() {
      const byType = new Map<string, Record<TaskState, number>>();
      for (const row of all(
        'select type, state, count(*) as count from tasks group by type, state order by type',
      )) {
        const type = String(row['type']);
        const states =
          byType.get(type) ??
          (Object.fromEntries(taskStates.map((state) => [state, 0])) as Record<TaskState, number>);
        states[String(row['state']) as TaskState] = Number(row['count']);
        byType.set(type, states);
      }
      return [...byType].map(([type, states]) => ({ type, states }));
    },
    workers: () =>
      all('select * from task_workers order by worker').map((row) => ({
        worker: String(row['worker']),
        aliveUntilMs: Number(row['alive_until_ms']),
        about: (row['about'] ?? null) === null ? undefined : String(row['about']),
      })),
    overdue: ({ nowMs, limit }) =>
      all(
        `select t.* from tasks t left join task_workers w on w.worker = t.worker
         where t.state = 'running' and (t.deadline_ms <= ?1
           or (t.cancel_at_ms > 0 and t.cancel_at_ms <= ?1)
           or coalesce(w.alive_until_ms, 0) <= ?1) limit ?2`,
        nowMs,
        limit,
      ).map(whole),
    dueScheduled: ({ nowMs, limit }) =>
      all(
        `select * from tasks where state = 'scheduled' and due_at_ms <= ? order by due_at_ms limit ?`,
        nowMs,
        limit,
      ).map(whole),
    endedBefore: ({ type, beforeMs, limit }) =>
      all(
        `select id from tasks where ended_at_ms > 0 and type = ? and ended_at_ms < ?
         order by ended_at_ms limit ?`,
        type,
        beforeMs,
        limit,
      ).map(({ id }) => ({ id: String(id), type })),
    modes: () =>
      all('select * from task_modes order by type').map(({ type, mode }) => ({
        type: String(type),
        mode: String(mode) as TypeMode,
      })),
    close() {
      if (database.isOpen) database.close();
    },
  };
}

function conditions(
  filter: TaskFilter,
  cursor: string | undefined,
): { readonly where: string; readonly values: readonly Value[] } {
  const parts: string[] = ['true'];
  const values: Value[] = [];
  const add = (sql: string, ...more: readonly (Value | undefined)[]): void => {
    const given = more.flatMap((value) => (value === undefined ? [] : [value]));
    if (given.length < more.length) return;
    parts.push(sql);
    values.push(...given);
  };
  add('type = ?', filter.type);
  add('tenant = ?', filter.tenant);
  add(`parent_id = ? and parent_id <> ''`, filter.parentId);
  add('enqueued_at_ms >= ?', filter.enqueuedFromMs);
  add('enqueued_at_ms < ?', filter.enqueuedBeforeMs);
  add('updated_at_ms >= ?', filter.updatedFromMs);
  add('updated_at_ms < ?', filter.updatedBeforeMs);
  if (filter.states !== undefined) {
    add('state in (select value from json_each(?))', JSON.stringify(filter.states));
  }
  for (const label of filter.labels ?? []) {
    const labels = `json_each(iif(json_valid(labels), labels, '[]'))`;
    add(`exists (select 1 from ${labels} where value = ?)`, label);
  }
  if (cursor !== undefined) {
    const { enqueuedAtMs, id } = parseCursor(cursor);
    add('(enqueued_at_ms, id) < (?, ?)', enqueuedAtMs, id);
  }
  return { where: parts.join(' and '), values };
}
