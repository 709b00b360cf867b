// Claimed jobs that did not reach their worker, because another part of the call failed or the wait was over. The next
// claim of the worker returns these jobs first; otherwise they would wait until their lease or deadline expires.

import type { ClaimRequest } from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';

/** The sweeper releases older jobs, so that workers that never return do not fill the memory. */
const tasksMax = 1_000;

export interface UndeliveredTasks {
  add(tasks: readonly StoredTask[]): void;
  /** Takes the worker's jobs, within the limits of the request. */
  takeFor(request: ClaimRequest): readonly StoredTask[];
}

export function createUndeliveredTasks(): UndeliveredTasks {
  let undelivered: readonly StoredTask[] = [];
  return {
    add(tasks) {
      undelivered = [...undelivered, ...tasks].slice(-tasksMax);
    },
    takeFor({ worker, rules, limit }) {
      if (undelivered.length === 0) return [];
      const room = new Map(rules.map((rule) => [rule.type, rule.limit]));
      const taken: StoredTask[] = [];
      undelivered = undelivered.filter((task) => {
        const { type, worker: owner } = task.head;
        const left = room.get(type) ?? 0;
        if (owner !== worker || left === 0 || taken.length === limit) return true;
        room.set(type, left - 1);
        taken.push(task);
        return false;
      });
      return taken;
    },
  };
}
