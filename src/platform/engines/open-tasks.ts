// Tasks by URL: only the adapter of the chosen engine is loaded.

import { MillraceError } from '../../foundation/error.ts';
import { createTasks, type TasksOptions } from '../../tasks/create-tasks.ts';
import { memoryTaskEngine } from '../../tasks/memory-task-engine.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { busUrlOf } from './open-bus.ts';

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
  const { clock } = options;
  if (/^memory:/i.test(url)) {
    return createTasks(memoryTaskEngine(clock === undefined ? {} : { clock }), options);
  }
  if (/^sqlite:/i.test(url)) {
    const { sqliteTasks } = await import('../../engines/sqlite/index.ts');
    return sqliteTasks(url, options);
  }
  if (/^rediss?(?:\+cluster)?:/i.test(url)) {
    const { redisTasks } = await import('../../engines/redis/index.ts');
    return redisTasks(url, options);
  }
  if (/^(nats|nats\+tls|tls):/i.test(url)) {
    const { natsTasks } = await import('../../engines/nats/index.ts');
    return natsTasks(url, options);
  }
  const known = 'sqlite:<file>, redis://host:6379, nats://host:4222 or memory:';
  throw new MillraceError('CONFIG_INVALID', `unsupported tasks URL; supported: ${known}`, {
    details: { field: 'tasks' },
  });
}

/** The default URL of tasks: that of the bus, which has their streams. */
export function tasksUrlOf(urls: {
  readonly store: string;
  readonly bus?: string | undefined;
  readonly tasks?: string | undefined;
}): string {
  if (urls.tasks !== undefined) return urls.tasks;
  const isMemory = urls.bus === undefined && /^memory:/i.test(urls.store);
  return isMemory ? 'memory:' : busUrlOf(urls);
}
