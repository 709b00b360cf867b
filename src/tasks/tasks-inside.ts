// What the sweeper, the orchestrator and the workers of this folder use of tasks beside their port.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Subjects } from '../contracts/subjects.ts';
import { invalid } from './check-task.ts';
import type { TaskChanges } from './task-changes.ts';
import type { DecideContext } from './task-decision.ts';
import type { TaskEngine } from './task-engine.ts';
import type { SignalMaker } from './task-signal.ts';
import type { Tasks } from './tasks.ts';

export interface TasksInside extends Pick<TaskChanges, 'change' | 'wakeParent'> {
  readonly engine: TaskEngine;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signals: SignalMaker;
  readonly subjects: Subjects<string>;
  readonly decideContext: (type: string) => DecideContext;
}

const insides = new WeakMap<Tasks, TasksInside>();

export function keepInside(tasks: Tasks, inside: TasksInside): void {
  insides.set(tasks, inside);
}

export function insideOf(tasks: Tasks): TasksInside {
  const inside = insides.get(tasks);
  if (inside === undefined) throw invalid('tasks', 'must come from createTasks');
  return inside;
}
