// Who gets which job of the engine in memory: types in turns, then the rules of each.

import type { MemoryTaskRows } from './memory-task-rows.ts';
import { selectClaims, type ClaimMemory } from './select-claims.ts';
import type { ClaimRequest } from './task-engine.ts';
import type { StoredTask, TaskHead } from './task-job.ts';

export interface MemoryClaims {
  readonly claimed: readonly StoredTask[];
  /** When something may be claimed that was not now: due later, or held back by a rate. */
  readonly freeAtMs: number;
}

export function createMemoryClaims(
  { tasks, pending, running, put }: MemoryTaskRows,
  isPaused: (type: string) => boolean,
): (request: ClaimRequest) => MemoryClaims {
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

  function claimNow(request: ClaimRequest): MemoryClaims {
    const { worker, nowMs } = request;
    const claimed: StoredTask[] = [];
    let freeAtMs = Infinity;
    const rules = request.rules.filter(({ type }) => !isPaused(type));
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

  return claimNow;
}

const rateKey = (type: string, tenant: string | undefined): string =>
  tenant === undefined ? type : `${type}|${tenant}`;
