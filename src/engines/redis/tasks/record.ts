// How Redis stores a job. The record is a string that changes: one line for each field, then the run. The fixed part is
// a string with info and payload. A job with steps or events also has a hash with a field for each of them. Records are
// strings instead of hashes, so that one command reads or writes many of them. Hash fields that start with `~` hold the
// stream ids of progress signals.

import type { HeadChange, TaskChange } from '../../../tasks/task-engine.ts';
import { damagedField } from '../../../tasks/task-record.ts';
import {
  damagedHead,
  taskStates,
  type StoredTask,
  type TaskFields,
  type TaskHead,
  type TaskState,
} from '../../../tasks/task-job.ts';

/**
 * The lines of a record, in order; `scripts/include/record.lua` has the same list. Only scripts set `queueSignal` and
 * `terminalSignal`, which are the fence and stream id of the last such signal. `rest` is the parent, the labels, an
 * empty line and the run.
 */
export const recordFields = [
  'state',
  'revision',
  'fence',
  'priority',
  'dueAtMs',
  'failures',
  'deadlineMs',
  'cancelAtMs',
  'claimedAtMs',
  'updatedAtMs',
  'endedAtMs',
  'queueSignal',
  'terminalSignal',
  'worker',
  'enqueuedAtMs',
  'tenant',
  'concurrencyKey',
  'hasHash',
  'rest',
] as const;

const lineOf = Object.fromEntries(recordFields.map((name, at) => [name, at])) as Record<
  (typeof recordFields)[number],
  number
>;

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

export function packRecord(head: TaskHead, fields: TaskFields): string {
  const values: Record<(typeof recordFields)[number], string | number> = {
    ...head,
    state: letters[head.state],
    queueSignal: '',
    terminalSignal: '',
    concurrencyKey: packKey(head.concurrencyKey),
    hasHash: hasHash(fields) ? 1 : '',
    rest: [head.parentId, ...head.labels, '', fields['run'] ?? ''].join('\n'),
  };
  return recordFields.map((name) => values[name]).join('\n');
}

function hasHash(fields: TaskFields): boolean {
  for (const name in fields) {
    if (name !== 'run' && name !== 'info' && name !== 'payload') return true;
  }
  return false;
}

/** Whether scripts can read the record. */
const isReadable = (record: string): boolean => /^[A-Z]\n(?:\S+\n){10}(?:[^\n]*\n){7}/.test(record);

export function unpackHead(type: string, suffix: string, record: string): TaskHead {
  if (!isReadable(record)) return damagedHead(`${type}.${suffix}`);
  const lines = record.slice(0, runAt(record) - 2).split('\n');
  const text = (field: keyof typeof lineOf): string => lines[lineOf[field]] ?? '';
  const number = (field: keyof typeof lineOf): number => Number(text(field));
  return {
    id: `${type}.${suffix}`,
    type,
    state: states.get(text('state')) ?? 'failed',
    revision: number('revision'),
    fence: number('fence'),
    priority: number('priority'),
    dueAtMs: number('dueAtMs'),
    failures: number('failures'),
    deadlineMs: number('deadlineMs'),
    cancelAtMs: number('cancelAtMs'),
    claimedAtMs: number('claimedAtMs'),
    updatedAtMs: number('updatedAtMs'),
    endedAtMs: number('endedAtMs'),
    worker: text('worker'),
    enqueuedAtMs: number('enqueuedAtMs'),
    tenant: text('tenant'),
    concurrencyKey: unpackKey(text('concurrencyKey')),
    parentId: text('rest'),
    labels: lines.slice(lineOf.rest + 1),
  };
}

/** The changed fields in the order that `change-and-claim.lua` reads, and the run; unchanged fields are empty. */
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

/** Escapes a concurrency key, which may come from a payload and contain any character. */
function packKey(key: string): string {
  return /[\n%]/.test(key) ? `%${encodeURIComponent(key)}` : key;
}

function unpackKey(text: string): string {
  return text.startsWith('%') ? decodeURIComponent(text.slice(1)) : text;
}

export function packFixed(fields: TaskFields): string {
  return `${fields['info'] ?? ''}\n${fields['payload'] ?? ''}`;
}

/** Takes id, record and fixed part, followed by the names and values of the hash. */
export function unpackTask(type: string, cells: readonly string[]): StoredTask {
  const [suffix = '', record = '', fixed = ''] = cells;
  const fields: Record<string, string> = { ...unpackFixed(fixed), run: runOf(record) };
  if (!isReadable(record)) fields[damagedField] = 'record';
  for (let at = 3; at + 1 < cells.length; at += 2) {
    const name = cells[at] as string;
    if (!name.startsWith('~')) fields[name] = cells[at + 1] as string;
  }
  return { head: unpackHead(type, suffix, record), fields };
}

export const runOf = (record: string): string => record.slice(runAt(record));

/** The position of the run, which is the last line. */
const runAt = (record: string): number => record.lastIndexOf('\n') + 1;

function unpackFixed(text: string): { readonly info: string; readonly payload: string } {
  const end = text.indexOf('\n');
  return { info: text.slice(0, end), payload: text.slice(end + 1) };
}
