// Who is next, of what a process knows. Several processes would choose the same: each job has one of them
// that takes it first, and the others come to it when they have nothing better to do.

import { selectClaims, type ClaimMemory } from '../../tasks/rules/select-claims.ts';
import type { ClaimRequest, ClaimRule } from '../../tasks/task-engine.ts';
import type { TaskHead } from '../../tasks/task-job.ts';
import type { TaskIndex } from './nats-task-index.ts';
import { taskKeys } from './nats-task-keys.ts';

export interface Choice {
  readonly picks: readonly { readonly head: TaskHead; readonly rule: ClaimRule }[];
  /** Key of a rate → what it becomes. */
  readonly rates: ReadonlyMap<string, number>;
  /** When it is worth another look: something comes due, or a rate is free. */
  readonly freeAtMs: number;
}

export interface ChoiceContext {
  readonly index: TaskIndex;
  /** Jobs that are being taken, or were taken by others and are not seen yet. */
  readonly isTaken: (head: TaskHead) => boolean;
  /** Concurrency keys that are full, whatever the index says: `<type>|<key>`. */
  readonly fullKeys: ReadonlySet<string>;
  /** Workers of other processes. */
  readonly rivals: readonly string[];
}

/** However many rivals there are. */
const lookMax = 2_000;
/** Behind every sequence of a stream, and before every turn of a choice. */
const turnBase = 9e14;

export function chooseClaims(
  request: Pick<ClaimRequest, 'rules' | 'nowMs' | 'worker' | 'limit'>,
  context: ChoiceContext,
): Choice {
  const { index, rivals } = context;
  const { nowMs, worker } = request;
  const picks: { readonly head: TaskHead; readonly rule: ClaimRule }[] = [];
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
    const look = Math.min(lookMax, limit * (rivals.length + 1));
    const ofKey = new Map<string, number>();
    const isOut = (head: TaskHead): boolean => {
      if (chosen.has(head.id) || context.isTaken(head)) return true;
      const { concurrencyKey: key } = head;
      if (key === '' || keyLimit === Infinity) return false;
      if (context.fullKeys.has(`${type}|${key}`)) return true;
      const count = ofKey.get(key) ?? memory.runningOf(type, key);
      // A few more of each key than fit would hide those of others behind them.
      if (count >= keyLimit) return true;
      ofKey.set(key, count + 1);
      return false;
    };
    const isEnough = (count: number): boolean => rate === undefined && count >= look;
    const due = index.pending.due(type, { nowMs, limit: look, isEnough, isOut });
    freeAtMs = Math.min(freeAtMs, due.nextDueMs);
    if (rivals.length === 0) return due.heads;
    const own = due.heads.filter((head) => isFirstFor(worker, head.id, rivals));
    return own.length >= limit ? own : due.heads;
  }

  // A fair part for each first, then what others left.
  const { rules } = request;
  for (const isFair of rules.length > 1 ? [true, false] : [false]) {
    for (const [at, rule] of rules.entries()) {
      const room = request.limit - picks.length;
      const part = isFair ? Math.ceil(room / (rules.length - at)) : room;
      const taken = picks.filter(({ head }) => head.type === rule.type).length;
      const limit = Math.min(rule.limit - taken, part);
      if (limit <= 0) continue;
      const found = selectClaims(dueOf(rule, limit), { ...rule, limit }, memory, nowMs);
      freeAtMs = Math.min(freeAtMs, found.freeAtMs ?? Infinity);
      for (const [tenant, ms] of found.rates) rates.set(taskKeys.rate(rule.type, tenant), ms);
      for (const head of found.heads) {
        picks.push({ head, rule });
        chosen.add(head.id);
        turns.set(laneOf(head), turnBase + picks.length);
        const key = `${head.type}|${head.concurrencyKey}`;
        keys.set(key, (keys.get(key) ?? 0) + 1);
      }
    }
  }
  return { picks, rates, freeAtMs };
}

const laneOf = ({ type, priority, tenant }: TaskHead): string => `${type}|${priority}|${tenant}`;

/** The one with the highest number of all that may come: each of them works out the same. */
export function isFirstFor(worker: string, id: string, rivals: readonly string[]): boolean {
  const own = hashOf(id, worker);
  return rivals.every((rival) => {
    const other = hashOf(id, rival);
    return other < own || (other === own && rival > worker);
  });
}

/** FNV-1a, with its bits mixed once more: ids of one moment differ in their ends only. */
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
