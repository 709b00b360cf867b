// An index of the bucket in memory, updated by the reader of the bucket and by the writes of this process. The index
// holds the heads of active jobs and a few fields of jobs in a terminal state. It may be outdated, so every write names
// its expected sequence.

import type { TypeCount, TypeMode, WorkerBeat } from '../../../tasks/task-engine.ts';
import { isTerminal, taskStates, type TaskHead, type TaskState } from '../../../tasks/task-job.ts';
import { partsOf, workerOf } from './keys.ts';
import { createPendingTasks, type PendingTasks } from './pending.ts';
import { decodeRow, type StoredTaskRow } from './row.ts';
import { createSortedList, type SortedList } from './sorted-list.ts';

export interface IndexedTask {
  readonly id: string;
  readonly type: string;
  readonly enqueuedAtMs: number;
  readonly updatedAtMs: number;
  readonly state: TaskState;
  readonly seq: number;
  /** Undefined: the job has ended. */
  readonly row: StoredTaskRow | undefined;
}

interface Versioned<Value> {
  readonly value: Value;
  readonly seq: number;
}

export interface TaskIndex {
  /** Applies a message of the bucket; a message older than the indexed one is ignored. */
  apply(key: string, seq: number, text: string): void;
  /** Applies a row that this process wrote or read. */
  applyRow(row: StoredTaskRow): void;
  clear(): void;
  /** A rate limit, slot or dedupe key was deleted from the bucket. */
  forget(key: string): void;
  find(id: string): IndexedTask | undefined;
  readonly size: number;
  /** Jobs of all types, newest first. */
  newest(before?: Pick<IndexedTask, 'enqueuedAtMs' | 'id'>): IterableIterator<IndexedTask>;
  /** Ended jobs of a type, the earliest first. */
  endedOf(type: string): IterableIterator<IndexedTask>;
  readonly running: ReadonlySet<string>;
  readonly pending: PendingTasks;
  counts(): readonly TypeCount[];
  runningOf(type: string, concurrencyKey: string): number;
  turnOf(head: TaskHead): number;
  readonly modes: ReadonlyMap<string, Versioned<TypeMode>>;
  readonly rates: ReadonlyMap<string, Versioned<number>>;
  readonly slots: ReadonlyMap<string, Versioned<string>>;
  readonly dedupes: ReadonlyMap<
    string,
    Versioned<{ readonly id: string; readonly untilMs: number }>
  >;
  beatOf(worker: string): number;
  beats(): readonly WorkerBeat[];
  aboutOf(worker: string): string | undefined;
  /** Deleted keys: the sequence of the marker, and when a sweep first saw it. */
  readonly markers: Map<string, { readonly seq: number; sinceMs: number | undefined }>;
  /** Other workers that claimed since this `performance.now()`. */
  rivals(own: ReadonlySet<string>, sinceMs: number): readonly string[];
}

/** The maximum number of body characters in memory; a claim need not read these bodies from the bucket. */
const bodyCharsMax = 64_000_000;
/** Turns of tenants that were not served for a long time are dropped, because such a tenant is next anyway. */
const turnsMax = 100_000;
const rivalsMax = 1_000;
const markersMax = 100_000;

export function createTaskIndex(): TaskIndex {
  const tasks = new Map<string, IndexedTask>();
  const order = createSortedList<Pick<IndexedTask, 'enqueuedAtMs' | 'id'>>(byEnqueued);
  const ended = new Map<string, SortedList<IndexedTask>>();
  const running = new Set<string>();
  const pending = createPendingTasks();
  const counts = new Map<string, Record<TaskState, number>>();
  const runningKeys = new Map<string, number>();
  const turns = new Map<string, number>();
  const modes = new Map<string, Versioned<TypeMode>>();
  const rates = new Map<string, Versioned<number>>();
  const slots = new Map<string, Versioned<string>>();
  const dedupes = new Map<string, Versioned<{ readonly id: string; readonly untilMs: number }>>();
  const alive = new Map<string, Versioned<number>>();
  const abouts = new Map<string, Versioned<string>>();
  const markers: TaskIndex['markers'] = new Map();
  const lastClaims = new Map<string, number>();
  let bodyChars = 0;

  function countOf(type: string): Record<TaskState, number> {
    let states = counts.get(type);
    if (states === undefined) {
      states = Object.fromEntries(taskStates.map((state) => [state, 0])) as Record<
        TaskState,
        number
      >;
      counts.set(type, states);
    }
    return states;
  }

  function remove(task: IndexedTask): void {
    const { id, type, state, row } = task;
    tasks.delete(id);
    countOf(type)[state] -= 1;
    if (row === undefined) {
      ended.get(type)?.remove(task);
      return;
    }
    bodyChars -= row.body?.length ?? 0;
    if (state !== 'running') {
      pending.remove(row.head);
      return;
    }
    running.delete(id);
    addKey(row.head, -1);
  }

  function addKey({ type, concurrencyKey }: TaskHead, by: 1 | -1): void {
    if (concurrencyKey === '') return;
    const key = `${type}|${concurrencyKey}`;
    const count = (runningKeys.get(key) ?? 0) + by;
    if (count === 0) runningKeys.delete(key);
    else runningKeys.set(key, count);
  }

  function insert(row: StoredTaskRow): void {
    const { head, seq } = row;
    const { id, type, state, enqueuedAtMs, updatedAtMs } = head;
    const hasEnded = isTerminal(state);
    const fits = bodyChars + (row.body?.length ?? 0) <= bodyCharsMax;
    const indexed = hasEnded ? undefined : fits ? row : { ...row, body: undefined };
    const task = { id, type, enqueuedAtMs, updatedAtMs, state, seq, row: indexed };
    tasks.set(id, task);
    countOf(type)[state] += 1;
    bodyChars += indexed?.body?.length ?? 0;
    if (hasEnded) endedOf(type).add(task);
    else if (state !== 'running') pending.add(head);
    else {
      running.add(id);
      addKey(head, 1);
    }
  }

  function endedOf(type: string): SortedList<IndexedTask> {
    let list = ended.get(type);
    if (list === undefined) {
      list = createSortedList<IndexedTask>(byUpdated);
      ended.set(type, list);
    }
    return list;
  }

  function applyRow(row: StoredTaskRow): void {
    const { head, seq } = row;
    const before = tasks.get(head.id);
    if (before !== undefined && before.seq >= seq) return;
    if (before === undefined) order.add({ enqueuedAtMs: head.enqueuedAtMs, id: head.id });
    else remove(before);
    insert(row);
    if (head.state === 'running' && head.fence !== before?.row?.head.fence) noteClaim(row);
  }

  function noteClaim({ head, seq }: StoredTaskRow): void {
    const turn = turnKey(head);
    turns.delete(turn);
    turns.set(turn, seq);
    if (turns.size > turnsMax) turns.delete(turns.keys().next().value ?? '');
    lastClaims.delete(head.worker);
    lastClaims.set(head.worker, performance.now());
    if (lastClaims.size > rivalsMax) lastClaims.delete(lastClaims.keys().next().value ?? '');
  }

  function removeJob(id: string, seq: number): void {
    const task = tasks.get(id);
    if (task === undefined || task.seq >= seq) return;
    remove(task);
    order.remove(task);
  }

  function setVersioned<Value>(
    map: Map<string, Versioned<Value>>,
    key: string,
    seq: number,
    value: Value | undefined,
  ): void {
    if ((map.get(key)?.seq ?? 0) >= seq) return;
    if (value === undefined) map.delete(key);
    else map.set(key, { value, seq });
  }

  function apply(key: string, seq: number, text: string): void {
    const { kind, rest } = partsOf(key);
    const isDeleted = text === '';
    if (isDeleted) {
      markers.set(key, { seq, sinceMs: undefined });
      // Bounds the memory of a process that never sweeps: other processes delete the markers.
      if (markers.size > markersMax) markers.delete(markers.keys().next().value ?? '');
    } else {
      markers.delete(key);
    }
    if (kind === 'job') {
      if (isDeleted) removeJob(rest, seq);
      else if ((tasks.get(rest)?.seq ?? 0) < seq) applyRow({ ...decodeRow(rest, text), seq });
    } else if (kind === 'mode') {
      setVersioned(modes, rest, seq, isDeleted ? undefined : (text as TypeMode));
    } else if (kind === 'beat') {
      setVersioned(alive, workerOf(rest), seq, isDeleted ? undefined : Number(text));
    } else if (kind === 'about') {
      setVersioned(abouts, workerOf(rest), seq, isDeleted ? undefined : text);
    } else if (kind === 'rate') {
      setVersioned(rates, key, seq, isDeleted ? undefined : Number(text));
    } else if (kind === 'slot') {
      setVersioned(slots, key, seq, isDeleted ? undefined : text);
    } else if (kind === 'dedupe') {
      setVersioned(dedupes, key, seq, isDeleted ? undefined : dedupeOf(text));
    }
  }

  return {
    apply,
    applyRow,
    clear() {
      for (const map of [tasks, ended, counts, runningKeys, turns, markers]) map.clear();
      for (const map of [modes, rates, slots, dedupes, alive, abouts]) map.clear();
      running.clear();
      order.clear();
      pending.clear();
      bodyChars = 0;
    },
    forget(key) {
      for (const map of [rates, slots, dedupes]) map.delete(key);
    },
    find: (id) => tasks.get(id),
    get size() {
      return tasks.size;
    },
    *newest(before) {
      for (const { id } of order.descending(before)) {
        const task = tasks.get(id);
        if (task !== undefined) yield task;
      }
    },
    *endedOf(type) {
      yield* ended.get(type)?.ascending() ?? [];
    },
    running,
    pending,
    counts: () =>
      [...counts]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([type, states]) => ({ type, states: { ...states } })),
    runningOf: (type, key) => runningKeys.get(`${type}|${key}`) ?? 0,
    turnOf: (head) => turns.get(turnKey(head)) ?? 0,
    modes,
    rates,
    slots,
    dedupes,
    beatOf: (worker) => alive.get(worker)?.value ?? 0,
    aboutOf: (worker) => abouts.get(worker)?.value,
    beats: () =>
      [...alive].map(([worker, { value: aliveUntilMs }]) => ({
        worker,
        aliveUntilMs,
        about: abouts.get(worker)?.value,
      })),
    markers,
    rivals: (own, sinceMs) =>
      [...lastClaims].flatMap(([worker, atMs]) =>
        atMs >= sinceMs && !own.has(worker) ? [worker] : [],
      ),
  };
}

const turnKey = ({ type, priority, tenant }: TaskHead): string => `${type}|${priority}|${tenant}`;

const byId = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : a.id > b.id ? 1 : 0;

function byEnqueued(
  a: Pick<IndexedTask, 'enqueuedAtMs' | 'id'>,
  b: Pick<IndexedTask, 'enqueuedAtMs' | 'id'>,
): number {
  return a.enqueuedAtMs - b.enqueuedAtMs || byId(a, b);
}

/** A job in a terminal state does not change, so its last update is the time when it reached that state. */
function byUpdated(a: IndexedTask, b: IndexedTask): number {
  return a.updatedAtMs - b.updatedAtMs || byId(a, b);
}

export const dedupeText = (id: string, untilMs: number): string => `${untilMs} ${id}`;

function dedupeOf(text: string): { readonly id: string; readonly untilMs: number } {
  const at = text.indexOf(' ');
  return { untilMs: Number(text.slice(0, at)), id: text.slice(at + 1) };
}
