// The tables of tasks, in the file of the bus that their signals go to, and their rows as jobs.

import { parseStored } from '../../../foundation/parse-json.ts';
import { damagedField } from '../../../tasks/task-record.ts';
import type { StoredTask, TaskHead, TaskState } from '../../../tasks/task-job.ts';
import type { SqlRow } from '../thread/protocol.ts';

/** Column `tasks.lane`: whether a claim may take the job. Partial indexes name these numbers, so statements do too. */
export const taskLane = {
  /** The job is running or in a terminal state. */
  closed: 0,
  ready: 1,
  /** The job is due later. */
  later: 2,
  /** The job waits until its concurrency key has room. */
  blocked: 3,
} as const;

export const sqliteTaskTables = `
   -- lane: see taskLane. queue_seq, terminal_seq: the last bus messages about the job.
   create table tasks (
     seq integer primary key autoincrement,
     id text not null unique,
     type text not null,
     tenant text not null,
     state text not null,
     lane integer not null,
     revision integer not null,
     fence integer not null,
     priority integer not null,
     due_at_ms integer not null,
     concurrency_key text not null,
     failures integer not null,
     worker text not null,
     deadline_ms integer not null,
     cancel_at_ms integer not null,
     parent_id text not null,
     labels text not null,
     enqueued_at_ms integer not null,
     claimed_at_ms integer not null,
     updated_at_ms integer not null,
     ended_at_ms integer not null,
     queue_seq integer not null default 0,
     terminal_seq integer not null default 0,
     payload text not null,
     info text not null,
     run text not null
   ) strict;
   create index tasks_ready on tasks (type, priority, tenant, due_at_ms, enqueued_at_ms, id) where lane = ${taskLane.ready};
   create index tasks_later on tasks (type, due_at_ms) where lane = ${taskLane.later};
   create index tasks_blocked on tasks (type, concurrency_key, priority, due_at_ms) where lane = ${taskLane.blocked};
   create index tasks_running on tasks (type, concurrency_key) where state = 'running';
   create index tasks_scheduled on tasks (due_at_ms) where state = 'scheduled';
   create index tasks_ended on tasks (type, ended_at_ms) where ended_at_ms > 0;
   create index tasks_by_parent on tasks (parent_id) where parent_id <> '';
   create index tasks_newest on tasks (enqueued_at_ms, id);
   create table task_fields (
     task integer not null,
     name text not null,
     value text not null,
     signal_seq integer not null default 0,
     primary key (task, name)
   ) strict, without rowid;
   create table task_dedupes (
     type text not null,
     key text not null,
     id text not null,
     until_ms integer not null,
     primary key (type, key)
   ) strict, without rowid;
   create index task_dedupes_by_time on task_dedupes (until_ms);
   create table task_modes (type text primary key, mode text not null) strict, without rowid;
   create table task_workers (
     worker text primary key,
     alive_until_ms integer not null,
     about text
   ) strict, without rowid;
   -- turn: an increasing number that shows when the tenant was served last.
   create table task_turns (
     type text not null,
     priority integer not null,
     tenant text not null,
     turn integer not null,
     primary key (type, priority, tenant)
   ) strict, without rowid;
   create table task_rates (
     type text not null,
     tenant text not null,
     full_at_ms real not null,
     primary key (type, tenant)
   ) strict, without rowid;`;

/** Fields that are columns of `tasks`; the others are rows of `task_fields`. */
export const columnFields: readonly string[] = ['payload', 'info', 'run'];

/** What `toHead` needs: the other columns may be large. */
export const headColumns = `id, type, tenant, state, revision, fence, priority, due_at_ms, concurrency_key, failures,
  worker, deadline_ms, cancel_at_ms, parent_id, labels, enqueued_at_ms, claimed_at_ms, updated_at_ms, ended_at_ms`;

export function toHead(row: SqlRow): TaskHead {
  const text = (name: string): string => String(row[name] ?? '');
  const number = (name: string): number => Number(row[name] ?? 0);
  return {
    id: text('id'),
    type: text('type'),
    tenant: text('tenant'),
    state: text('state') as TaskState,
    revision: number('revision'),
    fence: number('fence'),
    priority: number('priority'),
    dueAtMs: number('due_at_ms'),
    concurrencyKey: text('concurrency_key'),
    failures: number('failures'),
    worker: text('worker'),
    deadlineMs: number('deadline_ms'),
    cancelAtMs: number('cancel_at_ms'),
    parentId: text('parent_id'),
    labels: labelsOf(row) ?? [],
    enqueuedAtMs: number('enqueued_at_ms'),
    claimedAtMs: number('claimed_at_ms'),
    updatedAtMs: number('updated_at_ms'),
    endedAtMs: number('ended_at_ms'),
  };
}

/** Undefined: the stored text is damaged. */
function labelsOf(row: SqlRow): readonly string[] | undefined {
  const labels = parseStored(row['labels']);
  return Array.isArray(labels) ? (labels as string[]) : undefined;
}

export function toStoredTask(row: SqlRow, fields: readonly SqlRow[]): StoredTask {
  return {
    head: toHead(row),
    fields: {
      payload: String(row['payload']),
      info: String(row['info']),
      run: String(row['run']),
      ...Object.fromEntries(fields.map(({ name, value }) => [String(name), String(value)])),
      ...(labelsOf(row) === undefined ? { [damagedField]: 'labels' } : {}),
    },
  };
}
