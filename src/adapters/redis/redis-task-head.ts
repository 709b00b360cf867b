// A job as Redis keeps it: a hash of its head (one line for each part), of what never changes (`p`: info
// and payload), of its run (`r`), and of one field for each step and event. Where its steps were told
// stands in fields that begin with `~`.

import {
  taskStates,
  type StoredTask,
  type TaskFields,
  type TaskHead,
  type TaskState,
} from '../../tasks/task-job.ts';
import type { HeadChange } from '../../tasks/task-engine.ts';

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

/** Lines of a head, in Lua from 1 on: `t[5]` is when it is due. */
export function packHead(head: TaskHead): string {
  return [
    letters[head.state],
    head.revision,
    head.fence,
    head.priority,
    head.dueAtMs,
    head.failures,
    head.deadlineMs,
    head.cancelAtMs,
    head.claimedAtMs,
    head.updatedAtMs,
    head.endedAtMs,
    // Where its newest queue signal and its end were told: `<fence>:<id in the stream>`.
    '',
    '',
    head.worker,
    head.enqueuedAtMs,
    head.tenant,
    packKey(head.concurrencyKey),
    head.parentId,
    ...head.labels,
  ].join('\n');
}

export function unpackHead(type: string, suffix: string, text: string): TaskHead {
  const lines = text.split('\n');
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
    parentId: line(17),
    labels: lines.length > 18 ? lines.slice(18) : [],
  };
}

/** What a change sets, by the lines of a head; those that stay are empty. */
export function packChange(change: HeadChange): string {
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

/** Its id, its head, what never changes, its run, and then the names and values of the rest. */
export function unpackClaimed(type: string, cells: readonly string[]): StoredTask {
  const [suffix = '', head = '', fixed = '', run = ''] = cells;
  const fields: Record<string, string> = { ...unpackFixed(fixed), run };
  for (let at = 4; at + 1 < cells.length; at += 2)
    fields[cells[at] as string] = cells[at + 1] as string;
  return { head: unpackHead(type, suffix, head), fields };
}

function unpackFixed(text: string): { readonly info: string; readonly payload: string } {
  const end = text.indexOf('\n');
  return { info: text.slice(0, end), payload: text.slice(end + 1) };
}

/** From the names and values of its hash. */
export function unpackTask(
  type: string,
  suffix: string,
  cells: readonly string[],
): StoredTask | undefined {
  let head: TaskHead | undefined;
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < cells.length; at += 2) {
    const name = cells[at] as string;
    const value = cells[at + 1] as string;
    if (name === 'h') head = unpackHead(type, suffix, value);
    else if (name === 'p') Object.assign(fields, unpackFixed(value));
    else if (name === 'r') fields['run'] = value;
    else if (!name.startsWith('~')) fields[name] = value;
  }
  return head === undefined ? undefined : { head, fields };
}

/** `run` has a short name, as every job has one. */
export const fieldName = (name: string): string => (name === 'run' ? 'r' : name);
