// Tasks as the command line works on them: where the configuration of the folder has them.

import { loadConfig } from '../platform/config/millrace-config.ts';
import { busUrlOf, openBus } from '../platform/engines/open-bus.ts';
import { openTasks, tasksUrlOf } from '../platform/engines/open-tasks.ts';
import type { Bus } from '../bus/bus.ts';
import { taskStates, type TaskState } from '../tasks/task-job.ts';
import { taskType, type TaskType } from '../tasks/task-type.ts';
import type { Task } from '../tasks/task-record.ts';
import type { TaskQuery, Tasks } from '../tasks/tasks.ts';
import { loadTaskTypes } from '../tasks/run/watch-task-types.ts';
import { usage, type Command, type CommandContext } from './command.ts';
import { sinceTime } from './letter-filter-options.ts';
import { pairs } from './option-values.ts';
import type { Paint } from './paint.ts';
import { storeUrl } from './store-option.ts';

const variable = 'MILLRACE_TASKS';

export const tasksOption = {
  tasks: {
    type: 'string',
    value: 'url',
    summary: "where the jobs are (where the bus is: the store's file)",
  },
} as const;

export const tasksSections: NonNullable<Command['sections']> = [
  {
    title: 'Tasks',
    rows: [
      ['sqlite:<file>', 'a file; nothing to install'],
      [variable, 'the environment variable that stands in for --tasks'],
      ['MILLRACE_TASK_TYPES', 'the YAML file of the types (millrace.tasks.yaml, tasks.yaml)'],
    ],
  },
];

export interface OpenedTasks extends AsyncDisposable {
  readonly tasks: Tasks;
  /** Where their streams are. */
  readonly bus: () => Promise<Bus>;
}

/** With the types of the folder: those of its file, its configuration and its modules. */
export async function openFolderTasks(
  context: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<OpenedTasks> {
  const config = await loadConfig(context);
  const urls = { store: storeUrl(context, config.engines?.store), ...config.engines };
  const url = given === undefined ? tasksUrlOf(urls) : storeUrl(context, given);
  const types = new Map<string, TaskType>();
  for (const { tasks } of config.modules ?? []) {
    if (typeof tasks === 'function') continue;
    for (const { name } of tasks ?? []) types.set(name, taskType(name));
  }
  for (const type of config.taskTypes ?? []) types.set(type.name, type);
  if (config.taskTypesFile !== undefined) {
    for (const type of await loadTaskTypes(config.taskTypesFile)) types.set(type.name, type);
  }
  await using opened = new AsyncDisposableStack();
  const tasks = opened.use(await openTasks(url, { types: [...types.values()] }));
  const all = opened.move();
  return {
    tasks,
    bus: async () =>
      all.use(
        await openBus(given === undefined && urls.tasks === undefined ? busUrlOf(urls) : url),
      ),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export const taskFilterOptions = {
  type: { type: 'string', value: 'type', summary: 'only this type, such as email-send' },
  state: { type: 'string', value: 'state', multiple: true, summary: taskStates.join(', ') },
  tenant: { type: 'string', value: 'key', summary: 'only this tenant' },
  label: { type: 'string', value: 'name=value', multiple: true, summary: 'only with this label' },
  parent: { type: 'string', value: 'id', summary: 'only children of this job' },
  since: {
    type: 'string',
    value: 'time',
    summary: 'enqueued not longer ago than 12h, 30d, or a date',
  },
  until: { type: 'string', value: 'time', summary: 'enqueued before this' },
} as const;

export interface TaskFilterValues {
  readonly type?: string | undefined;
  readonly state?: readonly string[] | undefined;
  readonly tenant?: string | undefined;
  readonly label?: readonly string[] | undefined;
  readonly parent?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export function taskQueryOf(values: TaskFilterValues, nowMs: number): TaskQuery {
  const time = (text: string): Date => new Date(sinceTime(text, nowMs));
  return {
    ...(values.type === undefined ? {} : { type: values.type }),
    ...(values.state === undefined ? {} : { state: values.state.map(stateOf) }),
    ...(values.tenant === undefined ? {} : { tenant: values.tenant }),
    ...(values.label === undefined ? {} : { labels: pairs('label', values.label) }),
    ...(values.parent === undefined ? {} : { parentId: values.parent }),
    ...(values.since === undefined ? {} : { enqueuedFrom: time(values.since) }),
    ...(values.until === undefined ? {} : { enqueuedBefore: time(values.until) }),
  };
}

function stateOf(text: string): TaskState {
  const state = taskStates.find((each) => each === text);
  if (state !== undefined) return state;
  throw usage(`--state takes ${taskStates.join(', ')}, not '${text}'`);
}

export function stateText({ state }: Pick<Task, 'state'>, paint: Paint): string {
  if (state === 'completed') return paint.green(state);
  if (state === 'failed') return paint.red(state);
  return state === 'running' ? paint.cyan(state) : paint.dim(state);
}
