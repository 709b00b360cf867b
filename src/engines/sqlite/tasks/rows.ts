// Rows of the tables as jobs.

import type { StoredTask, TaskHead, TaskState } from '../../../tasks/task-job.ts';
import type { SqlRow } from '../thread/protocol.ts';

/** Fields that are columns of `tasks`; the others are rows of `task_fields`. */
export const columnFields: readonly string[] = ['payload', 'info', 'run'];

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
    labels: JSON.parse(text('labels')) as readonly string[],
    enqueuedAtMs: number('enqueued_at_ms'),
    claimedAtMs: number('claimed_at_ms'),
    updatedAtMs: number('updated_at_ms'),
    endedAtMs: number('ended_at_ms'),
  };
}

export function toStoredTask(row: SqlRow, fields: readonly SqlRow[]): StoredTask {
  return {
    head: toHead(row),
    fields: {
      payload: String(row['payload']),
      info: String(row['info']),
      run: String(row['run']),
      ...Object.fromEntries(fields.map(({ name, value }) => [String(name), String(value)])),
    },
  };
}
