// Tasks without a database, for unit tests and the simulator: the same rules, in one process, gone with it.

import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createWaiters } from '../store/waiters.ts';
import { selectClaims, type ClaimMemory } from './select-claims.ts';
import type {
  ChangeOutcome,
  ClaimRequest,
  ClaimWait,
  EnqueueEntry,
  EnqueueOutcome,
  TaskChange,
  TaskEngine,
  TaskFilter,
  TypeMode,
  WorkerBeat,
} from './task-engine.ts';
import { cursorOf, placeOf } from './list-cursor.ts';
import {
  isTerminal,
  taskStates,
  type StoredTask,
  type TaskHead,
  type TaskState,
} from './task-job.ts';
import type { TaskSignal } from './task-signal.ts';

/** The engine, and what its streams were told. */
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
export function memoryTaskEngine(options: { readonly clock?: Clock } = {}): MemoryTaskEngine {
  const { clock = systemClock } = options;
  const tasks = new Map<string, StoredTask>();
  /** Those that may be claimed, once they are due, by type. */
  const pending = new Map<string, Set<string>>();
  const running = new Set<string>();
  const dedupes = new Map<string, { readonly id: string; readonly untilMs: number }>();
  const modes = new Map<string, TypeMode>();
  const beats = new Map<string, WorkerBeat>();
  const turns = new Map<string, number>();
  const rates = new Map<string, number>();
  const streams = new Map<string, Map<string, TaskSignal>>();
  const waiters = createWaiters();
  let lastTurn = 0;
  let isClosed = false;

  function failIfClosed(): void {
    if (isClosed) throw new MillraceError('TASKS_CLOSED', 'the tasks were closed');
  }

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
    if (modes.get(head.type) === 'draining') return { kind: 'draining' };
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

  const memory: ClaimMemory = {
    turnOf: ({ type, priority, tenant }) => turns.get(`${type}|${priority}|${tenant}`) ?? 0,
    rateFullAtMs: (type, tenant) => rates.get(rateKey(type, tenant)) ?? 0,
    runningOf(type, key) {
      let count = 0;
      for (const id of running) {
        const head = tasks.get(id)?.head;
        if (head?.type === type && head.concurrencyKey === key) count += 1;
      }
      return count;
    },
  };
  const rateKey = (type: string, tenant: string | undefined): string =>
    tenant === undefined ? type : `${type}|${tenant}`;

  /** Types in turns; what is freed later by a rate is told by `freeAtMs`. */
  function claimNow(request: ClaimRequest): {
    readonly claimed: readonly StoredTask[];
    readonly freeAtMs: number;
  } {
    const { worker, aliveUntilMs, nowMs } = request;
    beats.set(worker, { ...beats.get(worker), worker, aliveUntilMs });
    const claimed: StoredTask[] = [];
    let freeAtMs = Infinity;
    const rules = request.rules.filter(({ type }) => modes.get(type) !== 'paused');
    const taken = new Map<string, number>();
    // A fair part for each first, then what others left.
    for (const isFair of [true, false]) {
      for (const [at, rule] of rules.entries()) {
        const room = request.limit - claimed.length;
        const part = isFair ? Math.ceil(room / (rules.length - at)) : room;
        const limit = Math.min(rule.limit - (taken.get(rule.type) ?? 0), part);
        if (limit <= 0) continue;
        const due: TaskHead[] = [];
        for (const id of pending.get(rule.type) ?? []) {
          const head = tasks.get(id)?.head;
          if (head === undefined) continue;
          if (head.dueAtMs <= nowMs) due.push(head);
          else freeAtMs = Math.min(freeAtMs, head.dueAtMs);
        }
        const chosen = selectClaims(due, { ...rule, limit }, memory, nowMs);
        freeAtMs = Math.min(freeAtMs, chosen.freeAtMs ?? Infinity);
        for (const [tenant, ms] of chosen.rates) rates.set(rateKey(rule.type, tenant), ms);
        for (const head of chosen.heads) {
          claimed.push(take(head, worker, rule.deadlineAfterMs, nowMs));
        }
        taken.set(rule.type, (taken.get(rule.type) ?? 0) + chosen.heads.length);
      }
    }
    return { claimed, freeAtMs };
  }

  function take(
    head: TaskHead,
    worker: string,
    deadlineAfterMs: number,
    nowMs: number,
  ): StoredTask {
    lastTurn += 1;
    turns.set(`${head.type}|${head.priority}|${head.tenant}`, lastTurn);
    const task: StoredTask = {
      head: {
        ...head,
        state: 'running',
        worker,
        fence: head.fence + 1,
        revision: head.revision + 1,
        claimedAtMs: nowMs,
        updatedAtMs: nowMs,
        deadlineMs: nowMs + deadlineAfterMs,
      },
      fields: tasks.get(head.id)?.fields ?? {},
    };
    put(task);
    return task;
  }

  async function claim(request: ClaimRequest, { waitMs, signal }: ClaimWait) {
    const leaseMs = request.aliveUntilMs - request.nowMs;
    const untilMs = clock.now() + waitMs;
    for (let nowMs = request.nowMs; ; nowMs = clock.now()) {
      failIfClosed();
      if (signal.aborted) throw aborted(signal);
      const over = new AbortController();
      // Joined before the look: what comes in between wakes us.
      const either = AbortSignal.any([signal, over.signal]);
      const woken = waiters.wait(either, () => false);
      try {
        const found = claimNow({ ...request, nowMs, aliveUntilMs: nowMs + leaseMs });
        const leftMs = untilMs - clock.now();
        if (found.claimed.length > 0 || leftMs <= 0) return found.claimed;
        const sleepMs = Math.max(0, Math.min(leftMs, found.freeAtMs - nowMs));
        await Promise.race([woken, clock.sleep(sleepMs, either)]);
      } finally {
        over.abort();
        await woken.catch(() => undefined);
      }
    }
  }

  const found = (ids: Iterable<string>, fits: (head: TaskHead) => boolean, limit: number) => {
    const list: StoredTask[] = [];
    for (const id of ids) {
      const task = tasks.get(id);
      if (task !== undefined && fits(task.head)) list.push(task);
      if (list.length === limit) break;
    }
    return list;
  };

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
      const outcomes = entries.map((entry) => enqueue(entry, nowMs));
      waiters.wakeAll();
      return outcomes;
    },
    async exchange(changes, request, nowMs) {
      failIfClosed();
      const outcomes = changes.map((each) => change(each, nowMs));
      const claimed = request === undefined ? [] : claimNow({ ...request, nowMs }).claimed;
      waiters.wakeAll();
      return { outcomes, claimed };
    },
    claim,

    async get(refs) {
      failIfClosed();
      return refs.map(({ id }) => tasks.get(id));
    },
    async heads(refs) {
      failIfClosed();
      return refs.map(({ id }) => tasks.get(id)?.head);
    },
    async list(filter, { cursor, limit }) {
      failIfClosed();
      const behind = cursor === undefined ? undefined : placeOf(cursor);
      const all = [...tasks.values()]
        .filter(
          ({ head }) => matches(filter, head) && (behind === undefined || isBehind(head, behind)),
        )
        .toSorted((a, b) => newestFirst(a.head, b.head));
      const page = all.slice(0, limit);
      const last = page.at(-1)?.head;
      return { tasks: page, cursor: all.length > limit && last ? cursorOf(last) : undefined };
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
      return found(running, isOver, limit);
    },
    async dueScheduled({ nowMs, limit }) {
      failIfClosed();
      const ids = [...pending.values()].flatMap((each) => [...each]);
      return found(ids, ({ state, dueAtMs }) => state === 'scheduled' && dueAtMs <= nowMs, limit);
    },
    async endedBefore({ type, beforeMs, limit }) {
      failIfClosed();
      const isOld = (head: TaskHead): boolean =>
        head.type === type && isTerminal(head.state) && head.endedAtMs < beforeMs;
      return found(tasks.keys(), isOld, limit).map(({ head: { id } }) => ({ id, type }));
    },
    async remove(refs) {
      failIfClosed();
      let removed = 0;
      for (const { id } of refs) {
        const task = tasks.get(id);
        if (task === undefined || !isTerminal(task.head.state)) continue;
        tasks.delete(id);
        removed += 1;
      }
      return removed;
    },
    async tidy(nowMs) {
      for (const [place, { untilMs }] of dedupes) if (untilMs <= nowMs) dedupes.delete(place);
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
      return tell(signals);
    },
    streamOf: (subject) => [...(streams.get(subject)?.values() ?? [])],
    deleteStream: (subject) => void streams.delete(subject),

    async [Symbol.asyncDispose]() {
      isClosed = true;
      waiters.wakeAll();
    },
  };
}

function matches(filter: TaskFilter, head: TaskHead): boolean {
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

function isBehind(
  head: TaskHead,
  { enqueuedAtMs, id }: { readonly enqueuedAtMs: number; readonly id: string },
): boolean {
  return head.enqueuedAtMs < enqueuedAtMs || (head.enqueuedAtMs === enqueuedAtMs && head.id < id);
}
