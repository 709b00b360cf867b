// Carries out what was decided about a job that nobody here holds: with the record's revision as its guard,
// again where somebody else was quicker, and with what follows from a job's end.

import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { refOf } from './check-task.ts';
import { decideWake } from './decide-queued.ts';
import type { DecideContext, Decision } from './task-decision.ts';
import type { TaskEngine } from './task-engine.ts';
import type { TaskExchange } from './task-exchange.ts';
import { endedChildren } from './task-holds.ts';
import { isTerminal, type StoredTask } from './task-job.ts';
import { runOf } from './task-record.ts';

type Decide = (task: StoredTask, context: DecideContext) => Decision | undefined;

export interface TaskChanges {
  /** `TASK_UNKNOWN` where there is no such job. */
  readonly load: (id: string) => Promise<StoredTask>;
  /** With the record's revision as its guard. False: somebody else was first, or nothing was decided. */
  readonly change: (task: StoredTask, decide: Decide) => Promise<boolean>;
  /** Until it is changed, or there is nothing to change. */
  readonly changeNow: (id: string, decide: Decide) => Promise<boolean>;
  readonly afterEnd: (task: StoredTask) => Promise<void>;
  /** True: all of its children have ended, and it was woken. */
  readonly wakeParent: (id: string) => Promise<boolean>;
}

export interface TaskChangesContext {
  readonly engine: TaskEngine;
  readonly exchange: TaskExchange;
  readonly observer: Observer;
  readonly decideContext: (type: string) => DecideContext;
  /** It is not held any more: what was remembered of it is old. */
  readonly forget: (id: string) => void;
}

/** After so many others were quicker, the caller is told. */
const triesMax = 20;

export function createTaskChanges(context: TaskChangesContext): TaskChanges {
  const { engine, exchange, observer, decideContext } = context;

  async function load(id: string): Promise<StoredTask> {
    const [task] = await engine.get([refOf(id)]);
    if (task !== undefined) return task;
    throw new MillraceError('TASK_UNKNOWN', `there is no job ${id}`, { details: { id } });
  }

  async function change(task: StoredTask, decide: Decide): Promise<boolean> {
    const { id, type, revision } = task.head;
    const decided = decide(task, decideContext(type));
    if (decided === undefined) return false;
    const { head, fields, signals } = decided;
    const guard = { revision };
    const outcome = await exchange.change({ id, type, guard, head, fields, signals });
    if (outcome.kind === 'stale') return false;
    const state = head.state ?? task.head.state;
    if (state !== 'running') context.forget(id);
    if (isTerminal(state)) await afterEnd({ ...task, head: { ...task.head, ...head } });
    return true;
  }

  async function changeNow(id: string, decide: Decide): Promise<boolean> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const task = await load(id);
      if (decide(task, decideContext(task.head.type)) === undefined) return false;
      if (await change(task, decide)) return true;
    }
    throw new MillraceError('TASK_CONFLICT', `job ${id} kept changing`, { details: { id } });
  }

  async function afterEnd({ head }: StoredTask): Promise<void> {
    observer.count?.('tasks_ended_total', { type: head.type, state: head.state });
    const seconds = (head.endedAtMs - head.enqueuedAtMs) / 1_000;
    observer.record?.('task_duration_seconds', seconds, { type: head.type, state: head.state });
    if (head.parentId === '') return;
    try {
      await wakeParent(head.parentId);
    } catch (err) {
      // The sweeper finds a parent whose children have all ended.
      observer.log?.warn({ taskId: head.parentId, err }, 'parent could not be woken');
    }
  }

  async function wakeParent(id: string): Promise<boolean> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const [parent] = await engine.get([refOf(id)]);
      if (parent?.head.state !== 'waiting') return false;
      const { waitsFor } = runOf(parent);
      if (waitsFor?.kind !== 'children') return false;
      if ((await endedChildren(engine, waitsFor.ids)) === undefined) return false;
      if (await change(parent, decideWake)) return true;
    }
    return false;
  }

  return { load, change, changeNow, afterEnd, wakeParent };
}
