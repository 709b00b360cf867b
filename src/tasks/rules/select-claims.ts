// Which jobs are next, as a pure choice: the order and the limits of a claim in every engine.

import { takeTokens } from '../../foundation/token-bucket.ts';
import type { ClaimRequest, ClaimRule } from '../task-engine.ts';
import type { TaskHead } from '../task-job.ts';

/** The state of an engine between claims. */
export interface ClaimMemory {
  /** A growing number: when the tenant was last served; 0: never. */
  turnOf(head: TaskHead): number;
  /** Of the type (`undefined`), or of one of its tenants. */
  rateFullAtMs(type: string, tenant: string | undefined): number;
  /** The number of running jobs of the key. */
  runningOf(type: string, concurrencyKey: string): number;
}

export interface Chosen {
  readonly heads: readonly TaskHead[];
  /** The new states of the used rates. */
  readonly rates: ReadonlyMap<string | undefined, number>;
  /** When a rate allows the next job; undefined: no rate delayed a job. */
  readonly freeAtMs: number | undefined;
}

/** `due`: jobs of the rule's type that may be claimed now. */
export function selectClaims(
  due: readonly TaskHead[],
  rule: ClaimRule,
  memory: ClaimMemory,
  nowMs: number,
): Chosen {
  const { rate, keyLimit, limit, type } = rule;
  const heads: TaskHead[] = [];
  const rates = new Map<string | undefined, number>();
  const runningKeys = new Map<string, number>();
  const turns = new Map<string, number>();
  let freeAtMs: number | undefined;
  let turn = 0;

  function hasRoom({ concurrencyKey }: TaskHead): boolean {
    if (keyLimit === undefined || concurrencyKey === '') return true;
    const running = runningKeys.get(concurrencyKey) ?? memory.runningOf(type, concurrencyKey);
    if (running >= keyLimit) return false;
    runningKeys.set(concurrencyKey, running + 1);
    return true;
  }

  function isWithinRate({ tenant }: TaskHead): boolean {
    if (rate === undefined) return true;
    const bucket = rate.isPerTenant ? tenant : undefined;
    const fullAtMs = rates.get(bucket) ?? memory.rateFullAtMs(type, bucket);
    const took = takeTokens({ ...rate, fullAtMs, nowMs, wanted: 1 });
    if (took.taken === 0) freeAtMs = Math.min(freeAtMs ?? Infinity, took.freeAtMs);
    else rates.set(bucket, took.fullAtMs);
    return took.taken === 1;
  }

  for (const jobsByTenant of byPriority(due)) {
    while (jobsByTenant.size > 0 && heads.length < limit) {
      const tenant = nextTenant(
        jobsByTenant,
        (head) => turns.get(head.tenant) ?? memory.turnOf(head) - 1e15,
      );
      const jobs = jobsByTenant.get(tenant) ?? [];
      // The first job whose concurrency key has room; the others do not block it.
      const at = jobs.findIndex((head) => hasRoom(head));
      const head = jobs[at];
      if (head === undefined || !isWithinRate(head)) {
        jobsByTenant.delete(tenant);
        continue;
      }
      jobs.splice(0, at + 1);
      if (jobs.length === 0) jobsByTenant.delete(tenant);
      turn += 1;
      turns.set(tenant, turn);
      heads.push(head);
    }
  }
  return { heads, rates, freeAtMs };
}

/** Calls `claim` for each rule with its limit: first a fair part for each type, then what the others left. */
export function claimInParts<Claimed>(
  { rules, limit }: { readonly rules: readonly ClaimRule[]; readonly limit: number },
  claim: (rule: ClaimRule, limit: number) => readonly Claimed[],
): readonly Claimed[] {
  const claimed: Claimed[] = [];
  const counts = new Map<string, number>();
  for (const isFair of rules.length > 1 ? [true, false] : [false]) {
    for (const [at, rule] of rules.entries()) {
      const room = limit - claimed.length;
      const part = isFair ? Math.ceil(room / (rules.length - at)) : room;
      const count = counts.get(rule.type) ?? 0;
      const most = Math.min(rule.limit - count, part);
      if (most <= 0) continue;
      const found = claim(rule, most);
      claimed.push(...found);
      counts.set(rule.type, count + found.length);
    }
  }
  return claimed;
}

/** The head of a job after a claim. */
export function claimedHead(
  head: TaskHead,
  { worker, nowMs }: Pick<ClaimRequest, 'worker' | 'nowMs'>,
  { deadlineAfterMs }: ClaimRule,
): TaskHead {
  return {
    ...head,
    state: 'running',
    worker,
    fence: head.fence + 1,
    revision: head.revision + 1,
    claimedAtMs: nowMs,
    updatedAtMs: nowMs,
    deadlineMs: nowMs + deadlineAfterMs,
  };
}

/** Highest priority first; in each, the ordered jobs of each tenant. */
function* byPriority(due: readonly TaskHead[]): Generator<Map<string, TaskHead[]>> {
  const levels = new Map<number, TaskHead[]>();
  for (const head of due) {
    const level = levels.get(head.priority);
    if (level === undefined) levels.set(head.priority, [head]);
    else level.push(head);
  }
  for (const priority of [...levels.keys()].toSorted((a, b) => b - a)) {
    const jobsByTenant = new Map<string, TaskHead[]>();
    for (const head of (levels.get(priority) ?? []).toSorted(inOrder)) {
      const jobs = jobsByTenant.get(head.tenant);
      if (jobs === undefined) jobsByTenant.set(head.tenant, [head]);
      else jobs.push(head);
    }
    yield jobsByTenant;
  }
}

/** By due time, then by enqueue time. */
export function inOrder(a: TaskHead, b: TaskHead): number {
  return (
    a.dueAtMs - b.dueAtMs ||
    a.enqueuedAtMs - b.enqueuedAtMs ||
    (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  );
}

function nextTenant(
  jobsByTenant: ReadonlyMap<string, readonly TaskHead[]>,
  turnOf: (head: TaskHead) => number,
): string {
  let next: { readonly tenant: string; readonly turn: number; readonly head: TaskHead } | undefined;
  for (const [tenant, [head]] of jobsByTenant) {
    if (head === undefined) continue;
    const turn = turnOf(head);
    const isBefore =
      next === undefined ||
      turn < next.turn ||
      (turn === next.turn && inOrder(head, next.head) < 0);
    if (isBefore) next = { tenant, turn, head };
  }
  return next?.tenant ?? '';
}
