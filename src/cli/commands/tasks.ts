// `millrace tasks …`: enqueues, lists, shows and follows jobs, and shows task types and workers.

import type { Bus } from '../../bus/bus.ts';
import { MillraceError } from '../../foundation/error.ts';
import { lazyPersonalData } from '../../store/personal-data.ts';
import { taskStates } from '../../tasks/task-job.ts';
import type { Task } from '../../tasks/task-record.ts';
import type { TaskType } from '../../tasks/task-type.ts';
import type { NewTask, TaskQuery, Tasks, TimelineEntry, WorkerInfo } from '../../tasks/tasks.ts';
import {
  defineCommand,
  exitCodes,
  optionalArgument,
  usage,
  type Command,
  type CommandContext,
  type Values,
} from '../command.ts';
import {
  defined,
  durationMs,
  flag,
  oneOf,
  option,
  pageSizeOf,
  pageSizeOption,
  pairs,
  pastTime,
  repeatable,
  tenantOption,
  nonNegativeInteger,
} from '../options.ts';
import { storeUrl } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import { fieldLines } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';

const enqueueBatchMax = 500;

export const tasksOption = {
  tasks: {
    ...option('url', 'database of the jobs (default: that of the bus)'),
    section: {
      title: 'Tasks',
      rows: [
        ['sqlite:<file>', 'a local file, without a server'],
        ['MILLRACE_TASKS', 'environment variable, used if --tasks is not given'],
        ['MILLRACE_TASK_TYPES', 'YAML file of task types (millrace.tasks.yaml, tasks.yaml)'],
      ],
    },
  },
} as const;

export const taskFilterOptions = {
  type: option('type', 'only this task type, such as email-send'),
  state: repeatable('state', `only ${taskStates.join(', ')} (repeatable)`),
  ...tenantOption,
  label: repeatable('name=value', 'only with this label (repeatable)'),
  parent: option('id', 'only children of this job'),
  since: option('time', 'only enqueued since 12h ago, 30d ago, or a date'),
  until: option('time', 'only enqueued before this time'),
};

const enqueue = defineCommand({
  name: 'tasks enqueue',
  summary: 'enqueues a job, or one for each line of stdin',
  usage: '<type> (<payload> | --lines)',
  options: {
    ...tasksOption,
    tenant: option('key', 'tenant of the job'),
    key: option('text', 'a second job with the same key is not stored'),
    priority: option('N', '0 to 9; higher runs first'),
    delay: option('time', 'delay before the job is due: 30s, 15m, 12h'),
    label: repeatable('name=value', 'label for filters (repeatable)'),
    lines: flag('reads one payload per line from stdin'),
  },
  examples: [
    `millrace tasks enqueue email-send '{"to":"c-1"}' --key welcome-c-1`,
    `millrace tasks enqueue report-gen '{}' --delay 12h --priority 9`,
    'millrace tasks enqueue email-send --lines < receivers.ndjson',
  ],
  hasArguments: true,
  async run(context) {
    const { name, values, positionals, isTTY, stdin, stderr, paint } = context;
    const [type, payload, ...rest] = positionals;
    const isLines = values.lines === true;
    if (type === undefined || rest.length > 0 || (payload === undefined) !== isLines) {
      throw usage(`${name} needs a type and a payload (JSON), or --lines`);
    }
    if (isLines && values.key !== undefined) {
      throw usage('--key and --lines cannot be combined: --key is for a single job');
    }
    const { tenant, key } = values;
    const common: Omit<NewTask, 'payload'> = {
      type,
      tenant,
      key,
      priority: nonNegativeInteger('priority', values.priority),
      delayMs: durationMs('delay', values.delay),
      labels: pairs('label', values.label),
    };
    await using opened = await openFolderTasks(context, values.tasks);
    if (payload !== undefined) {
      const job = await opened.tasks.enqueue({ ...common, payload: payloadOf(payload) });
      const done = job.isDuplicate ? paint.dim('duplicate of') : paint.green('enqueued');
      return { json: job, text: `${done} ${job.id}` };
    }
    let enqueued = 0;
    let batch: NewTask[] = [];
    const flush = async (): Promise<void> => {
      enqueued += (await opened.tasks.enqueueMany(batch)).length;
      batch = [];
      if (isTTY) stderr.write(`\r${enqueued} enqueued`);
    };
    for await (const line of linesOf(stdin())) {
      if (line.trim() === '') continue;
      batch.push({ ...common, payload: payloadOf(line) });
      if (batch.length === enqueueBatchMax) await flush();
    }
    await flush();
    if (isTTY) stderr.write('\n');
    return { json: { enqueued }, text: `${paint.green('enqueued')} ${enqueued}` };
  },
});

const list = defineCommand({
  name: 'tasks list',
  summary: 'lists jobs, newest first (NDJSON with --json)',
  usage: '[options]',
  options: {
    ...tasksOption,
    ...taskFilterOptions,
    ...pageSizeOption,
    after: option('cursor', 'cursor of the previous page'),
  },
  examples: [
    'millrace tasks list --type email-send --state failed',
    'millrace tasks list --label campaign=spring --since 12h --json',
  ],
  async run(context) {
    const { values, paint } = context;
    const page = { limit: pageSizeOf(values), cursor: values.after };
    const query = taskQueryOf(values);
    await using opened = await openFolderTasks(context, values.tasks);
    const { tasks, cursor } = await opened.tasks.list(query, page);
    const text = tasks.map((job) => jobLine(job, paint)).join('');
    return { items: tasks, text, none: 'no jobs', next: cursor };
  },
});

const show = defineCommand({
  name: 'tasks show',
  summary: 'shows a job: its payload, steps, result or error, and its timeline',
  usage: '<id>',
  options: tasksOption,
  examples: ['millrace tasks show email-send.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77'],
  argument: 'id',
  async run(context) {
    const { values, argument: id, paint } = context;
    await using opened = await openFolderTasks(context, values.tasks);
    const task = await opened.tasks.get(id);
    if (task === undefined) {
      throw new MillraceError('TASK_UNKNOWN', `unknown job '${id}'`, { details: { id } });
    }
    const timeline = await opened.tasks.timeline(id);
    return { document: { task, timeline }, text: jobPage(task, timeline, paint) };
  },
});

const tail = defineCommand({
  name: 'tasks tail',
  summary: 'follows the progress and results of jobs until Ctrl-C',
  usage: '[<id>]',
  options: {
    ...tasksOption,
    type: option('type', 'only this task type'),
    ...tenantOption,
  },
  examples: [
    'millrace tasks tail --type email-send',
    'millrace tasks tail report-gen.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json',
  ],
  hasArguments: true,
  async run(context) {
    const { values, stdout, signal, paint } = context;
    const id = optionalArgument(context, 'id, or none');
    const { followTasks } = await import('../../platform/follow-tasks.ts');
    await using opened = await openFolderTasks(context, values.tasks);
    const engines = { tasks: opened.tasks, bus: await opened.bus() };
    const query = { id, type: values.type, tenant: values.tenant, signal };
    for await (const { kind, at, signal: message } of await followTasks(engines, query)) {
      const { taskId, type: _type, ...fields } = message;
      const text =
        values.json === true
          ? JSON.stringify({ kind, at, ...message })
          : `${paint.dim(at.toISOString())}  ${kind.padEnd(8)}  ${paint.bold(String(taskId))}  ${JSON.stringify(fields)}`;
      await writeOut(stdout, `${text}\n`, signal);
    }
    return exitCodes.ok;
  },
});

const types = defineCommand({
  name: 'tasks types',
  summary: 'lists task types with their mode, concurrency and jobs',
  options: tasksOption,
  examples: ['millrace tasks types', 'millrace tasks types --json'],
  async run(context) {
    await using opened = await openFolderTasks(context, context.values.tasks);
    const { tasks } = opened;
    const [modes, counts] = await Promise.all([tasks.modes(), tasks.counts()]);
    const items = tasks.types().map((type) => ({
      ...type,
      mode: modes[type.name] ?? 'open',
      states: counts.find((each) => each.type === type.name)?.states ?? {},
    }));
    return { items, text: items.map((type) => typeLine(type, context.paint)).join('') };
  },
});

const workers = defineCommand({
  name: 'tasks workers',
  summary: 'lists active and stale workers',
  options: tasksOption,
  examples: ['millrace tasks workers'],
  async run(context) {
    await using opened = await openFolderTasks(context, context.values.tasks);
    const items = await opened.tasks.workers();
    const text = items.map((worker) => workerLine(worker, context.paint)).join('');
    return { items, text, none: 'no active workers' };
  },
});

export const taskCommands: readonly Command[] = [enqueue, list, show, tail, types, workers];

export interface OpenedTasks extends AsyncDisposable {
  readonly tasks: Tasks;
  /** Opens the bus that carries the messages of jobs. */
  readonly bus: () => Promise<Bus>;
}

/** Opens the tasks with all types of the folder: from its task file, configuration and modules. */
export async function openFolderTasks(
  context: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<OpenedTasks> {
  const { loadConfig } = await import('../../platform/config/millrace-config.ts');
  const { createEngineSet } = await import('../../platform/engines/open-engines.ts');
  const { createTasks } = await import('../../tasks/create-tasks.ts');
  const { taskType } = await import('../../tasks/task-type.ts');
  const { loadTaskTypes } = await import('../../tasks/run/watch-task-types.ts');
  const config = await loadConfig(context);
  const { engines: urls = {}, isProduction, localUrl } = config;
  const chosen = given === undefined ? urls : { ...urls, tasks: storeUrl(context, given) };
  const needs = { tasks: 'required', bus: 'optional' } as const;
  const engines = createEngineSet({ urls: chosen, needs, isProduction, localUrl });
  const byName = new Map<string, TaskType>();
  for (const { tasks } of config.modules ?? []) {
    if (typeof tasks === 'function') continue;
    for (const { name } of tasks ?? []) byName.set(name, taskType(name));
  }
  for (const type of config.taskTypes ?? []) byName.set(type.name, type);
  if (config.taskTypesFile !== undefined) {
    for (const type of await loadTaskTypes(config.taskTypesFile)) byName.set(type.name, type);
  }
  const opened = new AsyncDisposableStack();
  opened.use(engines);
  const tasks = opened.use(
    createTasks(await engines.open('tasks'), {
      types: [...byName.values()],
      personalData: lazyPersonalData(() => engines.open('store')),
    }),
  );
  return {
    tasks,
    bus: async () => (await engines.handleOf('tasks')).bus ?? engines.open('bus'),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const stateOf = oneOf(taskStates);

/** Only the given fields: a bulk command rejects an empty query. */
export function taskQueryOf(values: Values<typeof taskFilterOptions>): TaskQuery {
  const { type, state, tenant, label, parent, since, until } = values;
  return defined({
    type,
    state: state?.map((text) => stateOf('state', text)),
    tenant,
    labels: pairs('label', label),
    parentId: parent,
    enqueuedFrom: pastTime('since', since),
    enqueuedBefore: pastTime('until', until),
  });
}

function payloadOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw usage(`the payload is not JSON: ${text.slice(0, 60)}`, { cause: error });
  }
}

async function* linesOf(input: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const part of input) {
    rest += typeof part === 'string' ? part : decoder.decode(part, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest;
}

function jobLine(job: Task, paint: Paint): string {
  const { id, enqueuedAt, tenant, state, progress, error, attempt } = job;
  const percent = progress === undefined || state === 'completed' ? '' : ` ${progress.percent} %`;
  const owner = tenant === undefined ? '' : `  ${tenant}`;
  const reason = error === undefined ? '' : `: ${error.message.split('\n')[0] ?? ''}`;
  return `${paint.bold(id)}  ${enqueuedAt.toISOString()}  ${stateText(job, paint)}${percent}, attempt ${attempt}${owner}${reason}\n`;
}

function typeLine(
  {
    name,
    mode,
    workers: concurrency,
    states,
  }: TaskType & { readonly mode: string; readonly states: object },
  paint: Paint,
): string {
  const jobs = Object.entries(states)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state}`);
  return `${paint.bold(name)}  ${mode}, concurrency ${concurrency}  ${paint.dim(jobs.join(', ') || 'no jobs')}\n`;
}

function workerLine({ worker, isAlive, aliveUntil, about = {} }: WorkerInfo, paint: Paint): string {
  const state = isAlive ? paint.green('active') : paint.red('stale');
  return `${paint.bold(worker)}  ${state}, lease until ${aliveUntil.toISOString()}  ${paint.dim(JSON.stringify(about))}\n`;
}

function jobPage(job: Task, timeline: readonly TimelineEntry[], paint: Paint): string {
  const isDelayed = job.state === 'scheduled' || job.state === 'waiting';
  const fields = fieldLines(
    [
      ['state', stateText(job, paint)],
      ['tenant', job.tenant],
      ['attempt', job.attempt],
      ['worker', job.worker],
      ['progress', job.progress],
      ['waits for', job.waitsFor],
      ['due', isDelayed ? job.dueAt : undefined],
      ['payload', job.payload],
      ['result', job.result],
      ['error', job.error?.message],
    ],
    { width: 12, paintName: (name) => paint.cyan(name) },
  );
  const startMs = job.enqueuedAt.getTime();
  const events = timeline.map(({ at, what, step, worker, text }) => {
    const about = [step, worker === undefined ? undefined : `by ${worker}`, text];
    const more = about.filter((each) => each !== undefined).join('  ');
    const offset = offsetText(at.getTime() - startMs).padStart(10);
    return `  ${paint.dim(offset)}  ${what.padEnd(18)} ${more}`.trimEnd();
  });
  return [`${paint.bold(job.id)}\n${fields}`, ...events, ''].join('\n');
}

function offsetText(ms: number): string {
  if (ms < 1_000) return `+${ms} ms`;
  if (ms < 120_000) return `+${(ms / 1_000).toFixed(1)} s`;
  return `+${Math.round(ms / 60_000)} min`;
}

function stateText({ state }: Pick<Task, 'state'>, paint: Paint): string {
  if (state === 'completed') return paint.green(state);
  if (state === 'failed') return paint.red(state);
  return state === 'running' ? paint.cyan(state) : paint.dim(state);
}
