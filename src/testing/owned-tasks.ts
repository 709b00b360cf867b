// Tasks that own the handle of their engine, for suites that open and close a single port.

import { createTasks, type TasksOptions } from '../tasks/create-tasks.ts';
import type { TaskEngine } from '../tasks/task-engine.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { ownedRole } from './owned-role.ts';

export interface TaskHandle extends AsyncDisposable {
  readonly tasks: TaskEngine;
}

/** The tasks of an engine; closing them closes the handle. */
export function ownedTasks(handle: TaskHandle, options: TasksOptions): Tasks {
  const opened = new AsyncDisposableStack();
  opened.use(handle);
  const tasks = opened.use(createTasks(handle.tasks, options));
  return ownedRole({ tasks, [Symbol.asyncDispose]: () => opened.disposeAsync() }, 'tasks');
}
