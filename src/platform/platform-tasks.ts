// The tasks of a platform: opened when they are first asked for, with the types of the configuration.

import type { Bus } from '../bus/bus.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Tasks } from '../tasks/tasks.ts';
import type { TaskType } from '../tasks/task-type.ts';
import { busUrlOf, openBus } from './open-bus.ts';
import { openTasks, tasksUrlOf } from './open-tasks.ts';
import type { PlatformEngines } from './platform-engines.ts';

export interface PlatformTasks extends AsyncDisposable {
  /** The same each time. */
  readonly open: () => Promise<Tasks>;
  /** Where the streams of tasks are: they lie where the jobs do. */
  readonly bus: () => Promise<Bus>;
}

export function tasksOver(
  engines: Pick<PlatformEngines, 'bus' | 'urls'>,
  options: {
    readonly types: () => readonly TaskType[];
    readonly clock: Clock;
    readonly observer: Observer;
  },
): PlatformTasks {
  const { clock, observer } = options;
  const url = tasksUrlOf(engines.urls);
  const opened = new AsyncDisposableStack();
  const isBesideBus = url === busUrlOf(engines.urls);
  const tasks = once(async () =>
    opened.use(await openTasks(url, { types: options.types(), clock, observer })),
  );
  const bus = once(async () => opened.use(await openBus(url, { clock, observer })));
  return {
    open: tasks,
    async bus() {
      if (isBesideBus) return engines.bus();
      if (!/^memory:/i.test(url)) return bus();
      throw new MillraceError('NOT_SUPPORTED', 'tasks in memory have no streams to follow', {
        details: { field: 'tasks' },
      });
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined;
  return () => {
    opened ??= open().catch((error: unknown) => {
      // Whoever asks next tries again.
      opened = undefined;
      throw error;
    });
    return opened;
  };
}
