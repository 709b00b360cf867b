// Chooses jobs to claim from the index. Several processes would choose the same jobs, so each job has one preferred
// worker; the others choose it when they find no preferred job.

import {
  claimInParts,
  selectClaims,
  type ClaimMemory,
} from '../../../tasks/rules/select-claims.ts';
import type { ClaimRequest, ClaimRule } from '../../../tasks/task-engine.ts';
import type { TaskHead } from '../../../tasks/task-job.ts';
import type { TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';

export interface Choice {
  readonly picks: readonly { readonly head: TaskHead; readonly rule: ClaimRule }[];
  /** Key of a rate limit → its new value. */
  readonly rates: ReadonlyMap<string, number>;
  /** When the next job is due or a rate limit admits one. */
  readonly freeAtMs: number;
}

export interface ChoiceContext {
  readonly index: TaskIndex;
  /** Jobs with a claim in flight, or claimed by another process and not yet updated in the index. */
  readonly isTaken: (head: TaskHead) => boolean;
  /** Full concurrency keys that the index does not know of yet: `<type>|<key>`. */
  readonly fullKeys: ReadonlySet<string>;
  /** Workers of other processes. */
  readonly rivals: readonly string[];
}

/** Limits the scan, however many rivals there are. */
const candidatesMax = 2_000;
/** Larger than every sequence of a stream. */
const turnBase = 9e14;

export function chooseClaims(
  request: Pick<ClaimRequest, 'rules' | 'nowMs' | 'worker' | 'limit'>,
  context: ChoiceContext,
): Choice {
  const { index, rivals } = context;
  const { nowMs, worker } = request;
  const chosen = new Set<string>();
  const rates = new Map<string, number>();
  const turns = new Map<string, number>();
  const keys = new Map<string, number>();
  let freeAtMs = Infinity;

  const memory: ClaimMemory = {
    turnOf: (head) => turns.get(laneOf(head)) ?? index.turnOf(head),
    rateFullAtMs(type, tenant) {
      const key = taskKeys.rate(type, tenant);
      return rates.get(key) ?? index.rates.get(key)?.value ?? 0;
    },
    runningOf: (type, key) => index.runningOf(type, key) + (keys.get(`${type}|${key}`) ?? 0),
  };

  function dueOf(rule: ClaimRule, limit: number): readonly TaskHead[] {
    const { type, rate, keyLimit = Infinity } = rule;
    const wanted = Math.min(candidatesMax, limit * (rivals.length + 1));
    const ofKey = new Map<string, number>();
    const isExcluded = (head: TaskHead): boolean => {
      if (chosen.has(head.id) || context.isTaken(head)) return true;
      const { concurrencyKey: key } = head;
      if (key === '' || keyLimit === Infinity) return false;
      if (context.fullKeys.has(`${type}|${key}`)) return true;
      const count = ofKey.get(key) ?? memory.runningOf(type, key);
      // More jobs of a key than fit would hide jobs of other keys.
      if (count >= keyLimit) return true;
      ofKey.set(key, count + 1);
      return false;
    };
    const isEnough = (count: number): boolean => rate === undefined && count >= wanted;
    const due = index.pending.due(type, { nowMs, limit: wanted, isEnough, isExcluded });
    freeAtMs = Math.min(freeAtMs, due.nextDueMs);
    if (rivals.length === 0) return due.heads;
    const preferred = due.heads.filter((head) => isPreferredWorker(worker, head.id, rivals));
    return preferred.length >= limit ? preferred : due.heads;
  }

  const picks = claimInParts(request, (rule, limit) => {
    const found = selectClaims(dueOf(rule, limit), { ...rule, limit }, memory, nowMs);
    freeAtMs = Math.min(freeAtMs, found.freeAtMs ?? Infinity);
    for (const [tenant, ms] of found.rates) rates.set(taskKeys.rate(rule.type, tenant), ms);
    for (const head of found.heads) {
      chosen.add(head.id);
      turns.set(laneOf(head), turnBase + chosen.size);
      const key = `${head.type}|${head.concurrencyKey}`;
      keys.set(key, (keys.get(key) ?? 0) + 1);
    }
    return found.heads.map((head) => ({ head, rule }));
  });
  return { picks, rates, freeAtMs };
}

const laneOf = ({ type, priority, tenant }: TaskHead): string => `${type}|${priority}|${tenant}`;

/** Returns the worker with the highest hash, which is the same worker in all processes. */
export function isPreferredWorker(worker: string, id: string, rivals: readonly string[]): boolean {
  const own = hashOf(id, worker);
  return rivals.every((rival) => {
    const other = hashOf(id, rival);
    return other < own || (other === own && rival > worker);
  });
}

/** FNV-1a with a final mix, because ids of the same millisecond differ only in their last characters. */
function hashOf(id: string, worker: string): number {
  let hash = 0x811c9dc5;
  for (const text of [worker, id]) {
    for (let at = 0; at < text.length; at += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    }
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
