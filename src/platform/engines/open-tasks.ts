// Tasks by URL: only the adapter of the chosen engine is loaded.

import { createTasks, type TasksOptions } from '../../tasks/create-tasks.ts';
import { memoryTaskEngine } from '../../tasks/memory-task-engine.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { busUrlOf } from './open-bus.ts';
import { engineOf, isEngine } from './store-url.ts';

/**
 * Opens the tasks at a URL: `sqlite:<file>`, which may be the store's; `redis://host:6379`, `rediss:`,
 * `redis+cluster://a:6379,b:6379`; `nats://host:4222`, `nats+tls:`; `memory:` for tests.
 *
 * @example
 * import { openTasks } from 'millrace/platform';
 * import { taskType } from 'millrace/tasks';
 *
 * const types = [taskType('email-send', { workers: 4 })];
 * await using tasks = await openTasks('sqlite:.millrace/events.db', { types });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' }, key: 'welcome-c-1' });
 */
export async function openTasks(url: string, options: TasksOptions = {}): Promise<Tasks> {
  switch (engineOf('tasks', url, ['sqlite', 'redis', 'nats', 'memory'])) {
    case 'sqlite':
      return (await import('../../engines/sqlite/index.ts')).sqliteTasks(url, options);
    case 'redis':
      return (await import('../../engines/redis/index.ts')).redisTasks(url, options);
    case 'nats':
      return (await import('../../engines/nats/index.ts')).natsTasks(url, options);
    default:
      return createTasks(memoryTaskEngine({ clock: options.clock }), options);
  }
}

/** The default URL of tasks: that of the bus, which has their streams. */
export function tasksUrlOf(urls: {
  readonly store: string;
  readonly bus?: string | undefined;
  readonly tasks?: string | undefined;
}): string {
  if (urls.tasks !== undefined) return urls.tasks;
  const isMemory = urls.bus === undefined && isEngine('memory', urls.store);
  return isMemory ? 'memory:' : busUrlOf(urls);
}
