// Jobs that a worker has and could not be told of: its call failed in another part, or its wait was over.
// They are the first that its next claim gets; nobody else would, until its lease or their deadline ends.

import type { ClaimRequest } from '../../tasks/task-engine.ts';
import type { StoredTask } from '../../tasks/task-job.ts';

/** Beyond that they are left to the sweeper: workers that never come back must not fill the memory. */
const keptMax = 1_000;

export interface KeptTasks {
  keep(tasks: readonly StoredTask[]): void;
  /** Of those that the request has room for. */
  takeFor(request: ClaimRequest): readonly StoredTask[];
}

export function createKeptTasks(): KeptTasks {
  let kept: readonly StoredTask[] = [];
  return {
    keep(tasks) {
      kept = [...kept, ...tasks].slice(-keptMax);
    },
    takeFor({ worker, rules, limit }) {
      if (kept.length === 0) return [];
      const room = new Map(rules.map((rule) => [rule.type, rule.limit]));
      const taken: StoredTask[] = [];
      kept = kept.filter((task) => {
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
