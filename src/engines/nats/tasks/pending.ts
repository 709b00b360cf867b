// Jobs that wait for a worker, sorted by type, priority and tenant, so a claim reads only a few of them however many wait.

import { inOrder } from '../../../tasks/rules/select-claims.ts';
import type { TaskHead } from '../../../tasks/task-job.ts';
import { createSortedList, type SortedList } from './sorted-list.ts';

export interface PendingTasks {
  add(head: TaskHead): void;
  remove(head: TaskHead): void;
  clear(): void;
  /** Returns so many due jobs that a claim chooses the same jobs as from all of them. */
  due(type: string, query: DueQuery): DueTasks;
  /** Due jobs in state `scheduled`, of all types. */
  dueScheduled(nowMs: number, limit: number): readonly TaskHead[];
}

interface DueQuery {
  readonly nowMs: number;
  /** The maximum number of jobs per tenant and priority. */
  readonly limit: number;
  /** If true, lower priorities are not read. */
  readonly isEnough: (count: number) => boolean;
  /** Jobs to skip. */
  readonly isExcluded: (head: TaskHead) => boolean;
}

interface DueTasks {
  readonly heads: readonly TaskHead[];
  /** The time when the next job is due; `Infinity` if no job waits. */
  readonly nextDueMs: number;
}

type Lane = SortedList<TaskHead>;

export function createPendingTasks(): PendingTasks {
  const types = new Map<string, Map<number, Map<string, Lane>>>();

  function laneOf({ type, priority, tenant }: TaskHead): Lane | undefined {
    return types.get(type)?.get(priority)?.get(tenant);
  }

  return {
    add(head) {
      const levels = ensure(types, head.type, () => new Map<number, Map<string, Lane>>());
      const lanes = ensure(levels, head.priority, () => new Map<string, Lane>());
      ensure(lanes, head.tenant, () => createSortedList(inOrder)).add(head);
    },
    remove(head) {
      const lane = laneOf(head);
      lane?.remove(head);
      if (lane?.size === 0) types.get(head.type)?.get(head.priority)?.delete(head.tenant);
    },
    clear: () => types.clear(),
    due(type, { nowMs, limit, isEnough, isExcluded }) {
      const heads: TaskHead[] = [];
      let nextDueMs = Infinity;
      const levels = types.get(type) ?? new Map<number, Map<string, Lane>>();
      for (const priority of [...levels.keys()].toSorted((a, b) => b - a)) {
        if (isEnough(heads.length)) break;
        for (const lane of levels.get(priority)?.values() ?? []) {
          let taken = 0;
          for (const head of lane.ascending()) {
            if (head.dueAtMs > nowMs) {
              nextDueMs = Math.min(nextDueMs, head.dueAtMs);
              break;
            }
            if (isExcluded(head)) continue;
            heads.push(head);
            taken += 1;
            if (taken === limit) break;
          }
        }
      }
      return { heads, nextDueMs };
    },
    dueScheduled(nowMs, limit) {
      const found: TaskHead[] = [];
      for (const levels of types.values()) {
        for (const lanes of levels.values()) {
          for (const lane of lanes.values()) {
            for (const head of lane.ascending()) {
              if (head.dueAtMs > nowMs) break;
              if (head.state === 'scheduled') found.push(head);
              if (found.length === limit) return found;
            }
          }
        }
      }
      return found;
    },
  };
}

function ensure<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
