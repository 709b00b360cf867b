// An engine in memory, for unit tests and the simulator: the same rules, within one process.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createWaiters } from '../foundation/async/waiters.ts';
import { claimUntilFound, type ClaimAnswer } from './claim-until-found.ts';
import { cursorOf, parseCursor } from './list-cursor.ts';
import { createMemoryClaims, createMemoryTaskRows } from './memory-task-rows.ts';
import type { ClaimRequest, TaskEngine, TaskFilter, TypeMode, WorkerBeat } from './task-engine.ts';
import { fieldBytes, isTerminal, taskStates, type TaskHead, type TaskState } from './task-job.ts';
import type { TaskSignal } from './task-signal.ts';

/** The engine with access to its streams. */
export interface MemoryTaskEngine extends TaskEngine {
  streamOf(subject: string): readonly TaskSignal[];
  deleteStream(subject: string): void;
}

/**
 * An engine in memory.
 *
 * @example
 * import { createTasks, memoryTaskEngine, taskType } from 'millrace/tasks';
 *
 * await using tasks = createTasks(memoryTaskEngine(), { types: [taskType('report-gen')] });
 * console.log(await tasks.counts()); // []
 */
export function memoryTaskEngine(
  options: { readonly clock?: Clock | undefined } = {},
): MemoryTaskEngine {
  const { clock = systemClock } = options;
  const modes = new Map<string, TypeMode>();
  const beats = new Map<string, WorkerBeat>();
  const rows = createMemoryTaskRows((type) => modes.get(type) === 'draining');
  const { tasks, pending, running, streams } = rows;
  const select = createMemoryClaims(rows, (type) => modes.get(type) === 'paused');
  const waiters = createWaiters();
  let isClosed = false;

  function failIfClosed(): void {
    if (isClosed) throw new MillraceError('TASKS_CLOSED', 'the tasks were closed');
  }

  function claimNow(request: ClaimRequest): ClaimAnswer {
    failIfClosed();
    const { worker, aliveUntilMs } = request;
    beats.set(worker, { ...beats.get(worker), worker, aliveUntilMs });
    return select(request);
  }

  return {
    capabilities: {
      durable: false,
      crossProcess: false,
      atomicSignals: true,
      exactLimits: true,
      exactOrder: true,
    },
    beatThread: undefined,
    callsAtOnce: 2,

    async enqueue(entries, nowMs) {
      failIfClosed();
      const outcomes = entries.map((entry) => rows.enqueue(entry, nowMs));
      waiters.wakeAll();
      return outcomes;
    },
    async changeAndClaim(changes, request, nowMs) {
      failIfClosed();
      const outcomes = changes.map((each) => rows.change(each, nowMs));
      const claimed = request === undefined ? [] : claimNow({ ...request, nowMs }).claimed;
      waiters.wakeAll();
      return { outcomes, claimed };
    },
    claim: (request, wait) => claimUntilFound(claimNow, request, { ...wait, clock, waiters }),

    async get(refs) {
      failIfClosed();
      return refs.map(({ id }) => tasks.get(id));
    },
    async heads(refs) {
      failIfClosed();
      return refs.map(({ id }) => tasks.get(id)?.head);
    },
    async list(filter, { cursor, limit, bytesMax = Infinity }) {
      failIfClosed();
      const after = cursor === undefined ? undefined : parseCursor(cursor);
      const all = [...tasks.values()]
        .filter(
          ({ head }) =>
            matchesFilter(filter, head) && (after === undefined || isAfter(head, after)),
        )
        .toSorted((a, b) => newestFirst(a.head, b.head));
      let bytes = 0;
      const page = all.slice(0, limit).filter(({ fields }) => {
        const isWithin = bytes < bytesMax;
        bytes += fieldBytes(fields);
        return isWithin;
      });
      const last = page.at(-1)?.head;
      return { tasks: page, cursor: all.length > page.length && last ? cursorOf(last) : undefined };
    },
    async counts() {
      failIfClosed();
      const byType = new Map<string, Record<TaskState, number>>();
      for (const { head } of tasks.values()) {
        let states = byType.get(head.type);
        if (states === undefined) {
          states = Object.fromEntries(taskStates.map((state) => [state, 0])) as typeof states &
            object;
          byType.set(head.type, states);
        }
        states[head.state] += 1;
      }
      return [...byType]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([type, states]) => ({ type, states }));
    },

    async beat(beat) {
      failIfClosed();
      beats.set(beat.worker, { ...beat, about: beat.about ?? beats.get(beat.worker)?.about });
    },
    async workers() {
      return [...beats.values()];
    },
    async forgetWorker(worker) {
      beats.delete(worker);
    },
    async overdue({ nowMs, limit }) {
      failIfClosed();
      const isOver = (head: TaskHead): boolean =>
        head.deadlineMs <= nowMs ||
        (head.cancelAtMs > 0 && head.cancelAtMs <= nowMs) ||
        (beats.get(head.worker)?.aliveUntilMs ?? 0) <= nowMs;
      return rows.find(running, isOver, limit);
    },
    async dueScheduled({ nowMs, limit }) {
      failIfClosed();
      const ids = [...pending.values()].flatMap((each) => [...each]);
      return rows.find(
        ids,
        ({ state, dueAtMs }) => state === 'scheduled' && dueAtMs <= nowMs,
        limit,
      );
    },
    async endedBefore({ type, beforeMs, limit }) {
      failIfClosed();
      const isOld = (head: TaskHead): boolean =>
        head.type === type && isTerminal(head.state) && head.endedAtMs < beforeMs;
      return rows.find(tasks.keys(), isOld, limit).map(({ head: { id } }) => ({ id, type }));
    },
    async remove(refs) {
      failIfClosed();
      return refs.filter(({ id }) => rows.remove(id)).length;
    },
    async tidy(nowMs) {
      rows.forgetDedupes(nowMs);
    },

    async setMode(type, mode) {
      failIfClosed();
      if (mode === 'open') modes.delete(type);
      else modes.set(type, mode);
      waiters.wakeAll();
    },
    async modes() {
      return [...modes].map(([type, mode]) => ({ type, mode }));
    },

    async repair(signals) {
      failIfClosed();
      return rows.publish(signals);
    },
    streamOf: (subject) => [...(streams.get(subject)?.values() ?? [])],
    deleteStream: (subject) => void streams.delete(subject),

    async [Symbol.asyncDispose]() {
      isClosed = true;
      waiters.wakeAll();
    },
  };
}

function matchesFilter(filter: TaskFilter, head: TaskHead): boolean {
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

function newestFirst(a: TaskHead, b: TaskHead): number {
  return b.enqueuedAtMs - a.enqueuedAtMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

function isAfter(
  head: TaskHead,
  { enqueuedAtMs, id }: { readonly enqueuedAtMs: number; readonly id: string },
): boolean {
  return head.enqueuedAtMs < enqueuedAtMs || (head.enqueuedAtMs === enqueuedAtMs && head.id < id);
}
