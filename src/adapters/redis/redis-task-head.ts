// A job as Redis keeps it: a record that changes (its head, one line for each part, and its run), a text
// that never does (info and payload), and, once there are any, a hash with a field for each step and
// event. Texts, and not one hash of all: a command reads and writes those of many jobs. Where its steps
// were told stands in fields that begin with `~`.

import {
  taskStates,
  type StoredTask,
  type TaskFields,
  type TaskHead,
  type TaskState,
} from '../../tasks/task-job.ts';
import type { HeadChange, TaskChange } from '../../tasks/task-engine.ts';

const letters: Readonly<Record<TaskState, string>> = {
  scheduled: 'S',
  queued: 'Q',
  running: 'R',
  waiting: 'W',
  completed: 'C',
  failed: 'F',
  cancelled: 'X',
};
const states = new Map(taskStates.map((state) => [letters[state], state]));

export const letterOf = (state: TaskState): string => letters[state];

/** Lines of a record, in Lua from 1 on: `t[5]` is when it is due. */
export function packRecord(head: TaskHead, fields: TaskFields): string {
  // Where its newest queue signal and its end were told: `<fence>:<id in the stream>`.
  return `${packFirst(head)}\n\n${packRest(head, fields)}`;
}

/** The lines before those that only scripts know. */
export function packFirst(head: TaskHead, updatedAtMs = head.updatedAtMs): string {
  const { state, revision, fence, priority, dueAtMs, failures, deadlineMs, cancelAtMs } = head;
  const order = `${letters[state]}\n${revision}\n${fence}\n${priority}\n${dueAtMs}\n${failures}\n`;
  return `${order}${deadlineMs}\n${cancelAtMs}\n${head.claimedAtMs}\n${updatedAtMs}\n${head.endedAtMs}\n`;
}

/** And those behind them. */
export function packRest(head: TaskHead, fields: TaskFields): string {
  const { worker, enqueuedAtMs, tenant, concurrencyKey, parentId, labels } = head;
  const own = `${worker}\n${enqueuedAtMs}\n${tenant}\n${packKey(concurrencyKey)}\n`;
  const more = labels.length === 0 ? '' : `${labels.join('\n')}\n`;
  return `${own}${hasMore(fields) ? 1 : ''}\n${parentId}\n${more}\n${fields['run'] ?? ''}`;
}

/** Whether it has a hash, too. */
function hasMore(fields: TaskFields): boolean {
  for (const name in fields) {
    if (name !== 'run' && name !== 'info' && name !== 'payload') return true;
  }
  return false;
}

export function unpackHead(type: string, suffix: string, record: string): TaskHead {
  const lines = record.slice(0, runAt(record) - 2).split('\n');
  const line = (at: number): string => lines[at] ?? '';
  return {
    id: `${type}.${suffix}`,
    type,
    state: states.get(line(0)) ?? 'failed',
    revision: Number(line(1)),
    fence: Number(line(2)),
    priority: Number(line(3)),
    dueAtMs: Number(line(4)),
    failures: Number(line(5)),
    deadlineMs: Number(line(6)),
    cancelAtMs: Number(line(7)),
    claimedAtMs: Number(line(8)),
    updatedAtMs: Number(line(9)),
    endedAtMs: Number(line(10)),
    worker: line(13),
    enqueuedAtMs: Number(line(14)),
    tenant: line(15),
    concurrencyKey: unpackKey(line(16)),
    parentId: line(18),
    labels: lines.length > 19 ? lines.slice(19) : [],
  };
}

/** What a change sets, by the lines of a head, and the run; those that stay are empty. */
export function packChange(change: HeadChange, { run }: TaskChange['fields']): string {
  const { state, fence, priority, dueAtMs, failures, deadlineMs, cancelAtMs, endedAtMs } = change;
  return [
    state === undefined ? '' : letters[state],
    fence ?? '',
    priority ?? '',
    dueAtMs ?? '',
    failures ?? '',
    deadlineMs ?? '',
    cancelAtMs ?? '',
    endedAtMs ?? '',
    change.worker === undefined ? '' : `=${change.worker}`,
    run ?? '',
  ].join('\n');
}

/** Keys may come from payloads, and hold anything. */
function packKey(key: string): string {
  return /[\n%]/.test(key) ? `%${encodeURIComponent(key)}` : key;
}

function unpackKey(text: string): string {
  return text.startsWith('%') ? decodeURIComponent(text.slice(1)) : text;
}

export function packFixed(fields: TaskFields): string {
  return `${fields['info'] ?? ''}\n${fields['payload'] ?? ''}`;
}

/** Its id, its record, what never changes, and then the names and values of the rest. */
export function unpackTask(type: string, cells: readonly string[]): StoredTask {
  const [suffix = '', record = '', fixed = ''] = cells;
  const fields: Record<string, string> = { ...unpackFixed(fixed), run: runOf(record) };
  for (let at = 3; at + 1 < cells.length; at += 2) {
    const name = cells[at] as string;
    if (!name.startsWith('~')) fields[name] = cells[at + 1] as string;
  }
  return { head: unpackHead(type, suffix, record), fields };
}

export const runOf = (record: string): string => record.slice(runAt(record));

/** It is the last line, whatever stands before it. */
const runAt = (record: string): number => record.lastIndexOf('\n') + 1;

function unpackFixed(text: string): { readonly info: string; readonly payload: string } {
  const end = text.indexOf('\n');
  return { info: text.slice(0, end), payload: text.slice(end + 1) };
}
