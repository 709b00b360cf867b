// The records of the engine in memory, what they are found by, and what its streams were told.

import type { ChangeOutcome, EnqueueEntry, EnqueueOutcome, TaskChange } from './task-engine.ts';
import { isTerminal, type StoredTask, type TaskHead } from './task-job.ts';
import type { TaskSignal } from './task-signal.ts';

export interface MemoryTaskRows {
  readonly tasks: Map<string, StoredTask>;
  /** Those that may be claimed, once they are due, by type. */
  readonly pending: ReadonlyMap<string, ReadonlySet<string>>;
  readonly running: ReadonlySet<string>;
  readonly streams: Map<string, Map<string, TaskSignal>>;
  readonly put: (task: StoredTask) => void;
  enqueue(entry: EnqueueEntry, nowMs: number): EnqueueOutcome;
  change(change: TaskChange, nowMs: number): ChangeOutcome;
  find(ids: Iterable<string>, fits: (head: TaskHead) => boolean, limit: number): StoredTask[];
  remove(id: string): boolean;
  /** How many of them were new to their streams. */
  tell(signals: readonly TaskSignal[]): number;
  forgetDedupes(nowMs: number): void;
}

export function createMemoryTaskRows(isDraining: (type: string) => boolean): MemoryTaskRows {
  const tasks = new Map<string, StoredTask>();
  const pending = new Map<string, Set<string>>();
  const running = new Set<string>();
  const dedupes = new Map<string, { readonly id: string; readonly untilMs: number }>();
  const streams = new Map<string, Map<string, TaskSignal>>();

  function tell(signals: readonly TaskSignal[]): number {
    let told = 0;
    for (const signal of signals) {
      let stream = streams.get(signal.subject);
      if (stream === undefined) {
        stream = new Map();
        streams.set(signal.subject, stream);
      }
      if (stream.has(signal.id)) continue;
      stream.set(signal.id, signal);
      told += 1;
    }
    return told;
  }

  function put(task: StoredTask): void {
    const { id, type, state } = task.head;
    tasks.set(id, task);
    let ofType = pending.get(type);
    if (ofType === undefined) {
      ofType = new Set();
      pending.set(type, ofType);
    }
    if (state === 'running' || isTerminal(state)) ofType.delete(id);
    else ofType.add(id);
    if (state === 'running') running.add(id);
    else running.delete(id);
  }

  function enqueue({ head, fields, dedupe, signals }: EnqueueEntry, nowMs: number): EnqueueOutcome {
    if (isDraining(head.type)) return { kind: 'draining' };
    if (tasks.has(head.id)) return { kind: 'exists', id: head.id };
    if (dedupe !== undefined) {
      const place = `${head.type}|${dedupe.key}`;
      const before = dedupes.get(place);
      if (before !== undefined && before.untilMs > nowMs) return { kind: 'exists', id: before.id };
      dedupes.set(place, { id: head.id, untilMs: dedupe.untilMs });
    }
    put({ head, fields });
    tell(signals);
    return { kind: 'enqueued' };
  }

  function change({ id, guard, head, fields, signals }: TaskChange, nowMs: number): ChangeOutcome {
    const task = tasks.get(id);
    if (task === undefined) return { kind: 'stale', head: undefined };
    const { fence, revision } = guard;
    const isHeld =
      fence === undefined || (task.head.state === 'running' && task.head.fence === fence);
    const isAsSeen = revision === undefined || task.head.revision === revision;
    if (!isHeld || !isAsSeen) return { kind: 'stale', head: task.head };
    const next: Record<string, string> = { ...task.fields };
    for (const [name, text] of Object.entries(fields)) {
      if (text === null) delete next[name];
      else next[name] = text;
    }
    const changed = { ...task.head, ...head, revision: task.head.revision + 1, updatedAtMs: nowMs };
    put({
      head: changed.state === 'running' ? changed : { ...changed, worker: '' },
      fields: next,
    });
    tell(signals);
    return { kind: 'done', revision: changed.revision };
  }

  return {
    tasks,
    pending,
    running,
    streams,
    put,
    enqueue,
    change,
    tell,
    find(ids, fits, limit) {
      const list: StoredTask[] = [];
      for (const id of ids) {
        const task = tasks.get(id);
        if (task !== undefined && fits(task.head)) list.push(task);
        if (list.length === limit) break;
      }
      return list;
    },
    remove(id) {
      const task = tasks.get(id);
      if (task === undefined || !isTerminal(task.head.state)) return false;
      return tasks.delete(id);
    },
    forgetDedupes(nowMs) {
      for (const [place, { untilMs }] of dedupes) if (untilMs <= nowMs) dedupes.delete(place);
    },
  };
}
