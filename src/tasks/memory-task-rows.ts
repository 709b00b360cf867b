// The records of the memory engine with their indexes and streams, and its claims.

import {
  claimedHead,
  claimInParts,
  selectClaims,
  type ClaimMemory,
} from './rules/select-claims.ts';
import { applyDecision } from './rules/task-decision.ts';
import type { ClaimAnswer } from './claim-until-found.ts';
import type {
  ChangeOutcome,
  ClaimRequest,
  ClaimRule,
  EnqueueEntry,
  EnqueueOutcome,
  TaskChange,
} from './task-engine.ts';
import { isTerminal, type StoredTask, type TaskHead } from './task-job.ts';
import type { TaskSignal } from './task-signal.ts';

export interface MemoryTaskRows {
  readonly tasks: Map<string, StoredTask>;
  /** Ids of jobs that may be claimed when due, by type. */
  readonly pending: ReadonlyMap<string, ReadonlySet<string>>;
  readonly running: ReadonlySet<string>;
  readonly streams: Map<string, Map<string, TaskSignal>>;
  readonly put: (task: StoredTask) => void;
  enqueue(entry: EnqueueEntry, nowMs: number): EnqueueOutcome;
  change(change: TaskChange, nowMs: number): ChangeOutcome;
  find(ids: Iterable<string>, fits: (head: TaskHead) => boolean, limit: number): StoredTask[];
  remove(id: string): boolean;
  /** Returns how many were not yet in their streams. */
  publish(signals: readonly TaskSignal[]): number;
  forgetDedupes(nowMs: number): void;
}

export function createMemoryTaskRows(isDraining: (type: string) => boolean): MemoryTaskRows {
  const tasks = new Map<string, StoredTask>();
  const pending = new Map<string, Set<string>>();
  const running = new Set<string>();
  const dedupes = new Map<string, { readonly id: string; readonly untilMs: number }>();
  const streams = new Map<string, Map<string, TaskSignal>>();

  function publish(signals: readonly TaskSignal[]): number {
    let added = 0;
    for (const signal of signals) {
      let stream = streams.get(signal.subject);
      if (stream === undefined) {
        stream = new Map();
        streams.set(signal.subject, stream);
      }
      if (stream.has(signal.id)) continue;
      stream.set(signal.id, signal);
      added += 1;
    }
    return added;
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
      const dedupeKey = `${head.type}|${dedupe.key}`;
      const before = dedupes.get(dedupeKey);
      if (before !== undefined && before.untilMs > nowMs) return { kind: 'exists', id: before.id };
      dedupes.set(dedupeKey, { id: head.id, untilMs: dedupe.untilMs });
    }
    put({ head, fields });
    publish(signals);
    return { kind: 'enqueued' };
  }

  function change({ id, guard, head, fields, signals }: TaskChange, nowMs: number): ChangeOutcome {
    const task = tasks.get(id);
    if (task === undefined) return { kind: 'stale', head: undefined };
    const { fence, revision } = guard;
    const isClaimed =
      fence === undefined || (task.head.state === 'running' && task.head.fence === fence);
    const isAsSeen = revision === undefined || task.head.revision === revision;
    if (!isClaimed || !isAsSeen) return { kind: 'stale', head: task.head };
    const next = applyDecision(task, { head, fields }, nowMs);
    put(next.head.state === 'running' ? next : { ...next, head: { ...next.head, worker: '' } });
    publish(signals);
    return { kind: 'done', revision: next.head.revision };
  }

  return {
    tasks,
    pending,
    running,
    streams,
    put,
    enqueue,
    change,
    publish,
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
      for (const [dedupeKey, { untilMs }] of dedupes)
        if (untilMs <= nowMs) dedupes.delete(dedupeKey);
    },
  };
}

export function createMemoryClaims(
  { tasks, pending, running, put }: MemoryTaskRows,
  isPaused: (type: string) => boolean,
): (request: ClaimRequest) => ClaimAnswer {
  const turns = new Map<string, number>();
  const rates = new Map<string, number>();
  let lastTurn = 0;

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

  return (request) => {
    const { limit, nowMs } = request;
    let freeAtMs = Infinity;
    const rules = request.rules.filter(({ type }) => !isPaused(type));
    const claimed = claimInParts({ rules, limit }, (rule, most) => {
      const due: TaskHead[] = [];
      for (const id of pending.get(rule.type) ?? []) {
        const head = tasks.get(id)?.head;
        if (head === undefined) continue;
        if (head.dueAtMs <= nowMs) due.push(head);
        else freeAtMs = Math.min(freeAtMs, head.dueAtMs);
      }
      const chosen = selectClaims(due, { ...rule, limit: most }, memory, nowMs);
      freeAtMs = Math.min(freeAtMs, chosen.freeAtMs ?? Infinity);
      for (const [tenant, ms] of chosen.rates) rates.set(rateKey(rule.type, tenant), ms);
      return chosen.heads.map((head) => take(head, request, rule));
    });
    return { claimed, freeAtMs };
  };

  function take(head: TaskHead, request: ClaimRequest, rule: ClaimRule): StoredTask {
    lastTurn += 1;
    turns.set(`${head.type}|${head.priority}|${head.tenant}`, lastTurn);
    const { fields = {} } = tasks.get(head.id) ?? {};
    const task = { head: claimedHead(head, request, rule), fields };
    put(task);
    return task;
  }
}

const rateKey = (type: string, tenant: string | undefined): string =>
  tenant === undefined ? type : `${type}|${tenant}`;
