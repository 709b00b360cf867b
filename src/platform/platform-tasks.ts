// The tasks of a platform: opened on first use, with the types of the configuration.

import type { Bus } from '../bus/bus.ts';
import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { once } from '../foundation/async/once.ts';
import { createTasks } from '../tasks/create-tasks.ts';
import { startTaskOrchestrator } from '../tasks/run/start-orchestrator.ts';
import { startWorkers } from '../tasks/run/start-workers.ts';
import type { TypeCount } from '../tasks/task-engine.ts';
import { startTaskSweeper } from '../tasks/run/task-sweeper.ts';
import { taskType, type TaskType } from '../tasks/task-type.ts';
import type { Enqueued, NewTask, Tasks } from '../tasks/tasks.ts';
import { loadTaskTypes, watchTaskTypes } from '../tasks/run/watch-task-types.ts';
import type { PlatformEngines } from './engines/platform-engines.ts';
import type { AnyTask } from './modules/platform-module.ts';

export interface PlatformTasks extends AsyncDisposable {
  /** Always the same object. */
  readonly open: () => Promise<Tasks>;
  /** The bus with the streams of the tasks: in the same engine as the jobs. */
  readonly bus: () => Promise<Bus>;
  /** Undefined until the tasks are opened. */
  readonly counts: () => Promise<readonly TypeCount[]> | undefined;
  /** Runs the handlers, if there are any. */
  readonly startWorkers: () => readonly Promise<AsyncDisposable>[];
  /** Enqueues a job of Millrace itself, and makes sure that some worker runs it. */
  readonly enqueueOwn: (job: NewTask) => Promise<Enqueued>;
  /** Continues jobs of Millrace itself that an earlier process has left, in a process that uses no tasks. */
  readonly resumeOwn: () => Promise<void>;
  /** Runs sweeper and orchestrator, if a task type is configured. */
  readonly startSweepers: () => readonly Promise<AsyncDisposable>[];
}

export interface PlatformTasksOptions {
  readonly types?: readonly TaskType[] | undefined;
  /** YAML; reloaded when it changes. */
  readonly typesFile?: string | undefined;
  readonly definitions: readonly AnyTask[];
  /** The task of Millrace itself: its workers start with those of the definitions, or else with the first job. */
  readonly own: { readonly type: TaskType; readonly definition: AnyTask };
  readonly drainMs?: number | undefined;
  readonly leaseMs?: number | undefined;
  readonly sweepEveryMs?: number | undefined;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function tasksOver(
  engines: Pick<PlatformEngines, 'has' | 'store' | 'taskBus' | 'tasks'>,
  options: PlatformTasksOptions,
): PlatformTasks {
  const { personalData } = engines.store;
  const { clock, observer, definitions, own, typesFile, drainMs, leaseMs } = options;
  const opened = new AsyncDisposableStack();
  const bus = engines.taskBus;
  /** Types of the file override those of the code; a handler without an entry has the defaults. */
  const complete = (written: readonly TaskType[]): readonly TaskType[] => {
    const known = new Map((options.types ?? []).map((type) => [type.name, type]));
    for (const type of written) known.set(type.name, type);
    if (!known.has(own.type.name)) known.set(own.type.name, own.type);
    for (const { name } of definitions) if (!known.has(name)) known.set(name, taskType(name));
    return [...known.values()];
  };
  let isOpen = false;
  const tasks = once(async () => {
    const written = typesFile === undefined ? [] : await loadTaskTypes(typesFile);
    const types = complete(written);
    const created = opened.use(
      createTasks(await engines.tasks(), { types, clock, observer, personalData }),
    );
    isOpen = true;
    if (typesFile !== undefined) opened.use(watchTaskTypes(created, typesFile, { complete }));
    return created;
  });
  const work = async (handled: readonly AnyTask[]): Promise<AsyncDisposable> =>
    startWorkers(await tasks(), handled, {
      drainMs,
      leaseMs,
      control: async (pattern, signal) => (await bus()).subscribe(pattern, { signal }),
    });
  const sweep = async (): Promise<AsyncDisposable> =>
    startTaskSweeper(await tasks(), { everyMs: options.sweepEveryMs });
  const orchestrate = async (): Promise<AsyncDisposable> => {
    const [engine, streams] = await Promise.all([tasks(), bus()]);
    return startTaskOrchestrator(engine, {
      consume: (definition, handler) => streams.consume(definition, handler),
      group: (definition) => streams.group(definition),
    });
  };
  const isWanted =
    typesFile !== undefined || definitions.length > 0 || (options.types ?? []).length > 0;
  /** A process that uses no tasks has no worker and no sweeper until then. */
  const startOwn = once(async () => {
    if (isWanted) return;
    opened.use(await work([own.definition]));
    opened.use(await sweep());
  });
  const isOwnLeft = async (): Promise<boolean> => {
    if (isWanted || !engines.has('tasks')) return false;
    return (await (await engines.tasks()).counts()).some(({ type, states }) => {
      const { scheduled, queued, waiting, running } = states;
      return type === own.type.name && scheduled + queued + waiting + running > 0;
    });
  };
  return {
    async enqueueOwn(job) {
      await startOwn();
      return (await tasks()).enqueue(job);
    },
    async resumeOwn() {
      try {
        if (await isOwnLeft()) await startOwn();
      } catch (err) {
        observer.log?.warn({ err }, 'jobs of an earlier process could not be continued');
      }
    },
    open: tasks,
    bus,
    counts: () => (isOpen ? tasks().then((engine) => engine.counts()) : undefined),
    startWorkers: () => (isWanted ? [work([...definitions, own.definition])] : []),
    startSweepers: () => (isWanted ? [sweep(), orchestrate()] : []),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
