// `millrace tasks …`: enqueues, lists, shows and follows jobs, and shows task types and workers.

import type { Bus } from '../../bus/bus.ts';
import { MillraceError } from '../../foundation/error.ts';
import { taskStates } from '../../tasks/task-job.ts';
import type { Task } from '../../tasks/task-record.ts';
import type { TaskType } from '../../tasks/task-type.ts';
import type { NewTask, TaskQuery, Tasks, TimelineEntry } from '../../tasks/tasks.ts';
import {
  defineCommand,
  exitCodes,
  noArguments,
  oneArgument,
  printResult,
  usage,
  type Command,
  type CommandContext,
  type HelpSection,
  printPage,
} from '../command.ts';
import {
  defined,
  durationMs,
  jsonOption,
  oneOf,
  pairs,
  pastTime,
  wholeNumber,
} from '../options.ts';
import { storeUrl } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import { fieldLines } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';

const limitDefault = 50;
const enqueueBatchMax = 500;

export const tasksOption = {
  tasks: {
    type: 'string',
    value: 'url',
    summary: 'database of the jobs (default: that of the bus)',
  },
} as const;

export const tasksSections: readonly HelpSection[] = [
  {
    title: 'Tasks',
    rows: [
      ['sqlite:<file>', 'a local file, without a server'],
      ['MILLRACE_TASKS', 'environment variable, used if --tasks is not given'],
      ['MILLRACE_TASK_TYPES', 'YAML file of task types (millrace.tasks.yaml, tasks.yaml)'],
    ],
  },
];

export const taskFilterOptions = {
  type: { type: 'string', value: 'type', summary: 'only this task type, such as email-send' },
  state: {
    type: 'string',
    value: 'state',
    multiple: true,
    summary: `only ${taskStates.join(', ')} (repeatable)`,
  },
  tenant: { type: 'string', value: 'key', summary: 'only of this tenant' },
  label: {
    type: 'string',
    value: 'name=value',
    multiple: true,
    summary: 'only with this label (repeatable)',
  },
  parent: { type: 'string', value: 'id', summary: 'only children of this job' },
  since: {
    type: 'string',
    value: 'time',
    summary: 'only enqueued since 12h ago, 30d ago, or a date',
  },
  until: { type: 'string', value: 'time', summary: 'only enqueued before this time' },
} as const;

const enqueue = defineCommand({
  name: 'tasks enqueue',
  summary: 'enqueues a job, or one for each line of stdin',
  usage: 'tasks enqueue <type> (<payload> | --lines)',
  options: {
    ...tasksOption,
    tenant: { type: 'string', value: 'key', summary: 'tenant of the job' },
    key: {
      type: 'string',
      value: 'text',
      summary: 'a second job with the same key is not stored',
    },
    priority: { type: 'string', value: 'N', summary: '0 to 9; higher runs first' },
    delay: { type: 'string', value: 'time', summary: 'delay before the job is due: 30s, 15m, 12h' },
    label: {
      type: 'string',
      value: 'name=value',
      multiple: true,
      summary: 'label for filters (repeatable)',
    },
    lines: { type: 'boolean', summary: 'reads one payload per line from stdin' },
    ...jsonOption,
  },
  examples: [
    `millrace tasks enqueue email-send '{"to":"c-1"}' --key welcome-c-1`,
    `millrace tasks enqueue report-gen '{}' --delay 12h --priority 9`,
    'millrace tasks enqueue email-send --lines < receivers.ndjson',
  ],
  sections: tasksSections,
  async run(context, { name, values, positionals }) {
    const { stderr, paint } = context;
    const [type, payload, ...rest] = positionals;
    const isLines = values.lines === true;
    if (type === undefined || rest.length > 0 || (payload === undefined) !== isLines) {
      throw usage(`${name} takes a type and a payload (JSON), or --lines`);
    }
    if (isLines && values.key !== undefined) {
      throw usage('--key is for a single job and does not go with --lines');
    }
    const { tenant, key, delay, label } = values;
    const common: Omit<NewTask, 'payload'> = {
      type,
      tenant,
      key,
      priority: wholeNumber('priority', values.priority),
      delayMs: delay === undefined ? undefined : durationMs('delay', delay),
      labels: label === undefined ? undefined : pairs('label', label),
    };
    await using opened = await openFolderTasks(context, values.tasks);
    if (payload !== undefined) {
      const job = await opened.tasks.enqueue({ ...common, payload: payloadOf(payload) });
      const done = job.isDuplicate ? paint.dim('duplicate of') : paint.green('enqueued');
      return printResult(context, values, { json: job, text: `${done} ${job.id}` });
    }
    let enqueued = 0;
    let batch: NewTask[] = [];
    const flush = async (): Promise<void> => {
      enqueued += (await opened.tasks.enqueueMany(batch)).length;
      batch = [];
      if (context.isTTY) stderr.write(`\r${enqueued} enqueued`);
    };
    for await (const line of linesOf(context.stdin())) {
      if (line.trim() === '') continue;
      batch.push({ ...common, payload: payloadOf(line) });
      if (batch.length === enqueueBatchMax) await flush();
    }
    await flush();
    if (context.isTTY) stderr.write('\n');
    return printResult(context, values, {
      json: { enqueued },
      text: `${paint.green('enqueued')} ${enqueued}`,
    });
  },
});

const list = defineCommand({
  name: 'tasks list',
  summary: 'lists jobs, newest first (NDJSON with --json)',
  usage: 'tasks list [options]',
  options: {
    ...tasksOption,
    ...taskFilterOptions,
    limit: { type: 'string', value: 'N', summary: `page size (default: ${limitDefault})` },
    after: { type: 'string', value: 'cursor', summary: 'cursor of the previous page' },
    ...jsonOption,
  },
  examples: [
    'millrace tasks list --type email-send --state failed',
    'millrace tasks list --label campaign=spring --since 12h --json',
  ],
  sections: tasksSections,
  async run(context, input) {
    const { values } = input;
    noArguments(input);
    const limit = wholeNumber('limit', values.limit) ?? limitDefault;
    const query = taskQueryOf(values);
    await using opened = await openFolderTasks(context, values.tasks);
    const page = await opened.tasks.list(query, { limit, cursor: values.after });
    return printPage(context, values, {
      items: page.tasks,
      line: (job) => jobLine(job, context.paint),
      none: 'no jobs',
      next: page.cursor,
    });
  },
});

const show = defineCommand({
  name: 'tasks show',
  summary: 'shows a job: its payload, steps, result or error, and its timeline',
  usage: 'tasks show <id>',
  options: { ...tasksOption, ...jsonOption },
  examples: ['millrace tasks show email-send.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77'],
  sections: tasksSections,
  async run(context, input) {
    const { stdout, paint } = context;
    const { values } = input;
    const id = oneArgument(input, 'id');
    await using opened = await openFolderTasks(context, values.tasks);
    const task = await opened.tasks.get(id);
    if (task === undefined) {
      throw new MillraceError('TASK_UNKNOWN', `there is no job ${id}`, { details: { id } });
    }
    const timeline = await opened.tasks.timeline(id);
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ task, timeline }, null, 2)}\n`
        : jobPage(task, timeline, paint),
    );
    return exitCodes.ok;
  },
});

const tail = defineCommand({
  name: 'tasks tail',
  summary: 'follows the progress and results of jobs until Ctrl-C',
  usage: 'tasks tail [<id>]',
  options: {
    ...tasksOption,
    ...jsonOption,
    type: { type: 'string', value: 'type', summary: 'only this task type' },
    tenant: { type: 'string', value: 'key', summary: 'only of this tenant' },
  },
  examples: [
    'millrace tasks tail --type email-send',
    'millrace tasks tail report-gen.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json',
  ],
  sections: tasksSections,
  async run(context, { values, positionals }) {
    const { stdout, signal, paint } = context;
    const [id, ...rest] = positionals;
    if (rest.length > 0) throw usage('tasks tail takes one id, or none');
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
  usage: 'tasks types',
  options: { ...tasksOption, ...jsonOption },
  examples: ['millrace tasks types', 'millrace tasks types --json'],
  sections: tasksSections,
  async run(context, { values }) {
    const { stdout, paint } = context;
    await using opened = await openFolderTasks(context, values.tasks);
    const { tasks } = opened;
    const [modes, counts] = await Promise.all([tasks.modes(), tasks.counts()]);
    for (const type of tasks.types()) {
      const mode = modes[type.name] ?? 'open';
      const states = counts.find((each) => each.type === type.name)?.states;
      const jobs = Object.entries(states ?? {})
        .filter(([, count]) => count > 0)
        .map(([state, count]) => `${count} ${state}`);
      stdout.write(
        values.json === true
          ? `${JSON.stringify({ ...type, mode, states: states ?? {} })}\n`
          : `${paint.bold(type.name)}  ${mode}, concurrency ${type.workers}  ${paint.dim(jobs.join(', ') || 'no jobs')}\n`,
      );
    }
    return exitCodes.ok;
  },
});

const workers = defineCommand({
  name: 'tasks workers',
  summary: 'lists active and stale workers',
  usage: 'tasks workers',
  options: { ...tasksOption, ...jsonOption },
  examples: ['millrace tasks workers'],
  sections: tasksSections,
  async run(context, { values }) {
    const { stdout, stderr, paint } = context;
    await using opened = await openFolderTasks(context, values.tasks);
    const all = await opened.tasks.workers();
    for (const each of all) {
      const until = each.aliveUntil.toISOString();
      const state = each.isAlive ? paint.green('active') : paint.red('stale');
      stdout.write(
        values.json === true
          ? `${JSON.stringify(each)}\n`
          : `${paint.bold(each.worker)}  ${state}, lease until ${until}  ${paint.dim(JSON.stringify(each.about ?? {}))}\n`,
      );
    }
    if (all.length === 0 && values.json !== true) stderr.write('no active workers\n');
    return exitCodes.ok;
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
  const { busUrlOf, openBus } = await import('../../platform/engines/open-bus.ts');
  const { openTasks, tasksUrlOf } = await import('../../platform/engines/open-tasks.ts');
  const { taskType } = await import('../../tasks/task-type.ts');
  const { loadTaskTypes } = await import('../../tasks/run/watch-task-types.ts');
  const config = await loadConfig(context);
  const store = config.engines?.store ?? storeUrl(context, undefined);
  const urls = { ...config.engines, store };
  const url = given === undefined ? tasksUrlOf(urls) : storeUrl(context, given);
  const byName = new Map<string, TaskType>();
  for (const { tasks } of config.modules ?? []) {
    if (typeof tasks === 'function') continue;
    for (const { name } of tasks ?? []) byName.set(name, taskType(name));
  }
  for (const type of config.taskTypes ?? []) byName.set(type.name, type);
  if (config.taskTypesFile !== undefined) {
    for (const type of await loadTaskTypes(config.taskTypesFile)) byName.set(type.name, type);
  }
  const tasks = await openTasks(url, { types: [...byName.values()] });
  const opened = new AsyncDisposableStack();
  opened.use(tasks);
  return {
    tasks,
    bus: async () =>
      opened.use(
        await openBus(given === undefined && urls.tasks === undefined ? busUrlOf(urls) : url),
      ),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export interface TaskFilterValues {
  readonly type?: string | undefined;
  readonly state?: readonly string[] | undefined;
  readonly tenant?: string | undefined;
  readonly label?: readonly string[] | undefined;
  readonly parent?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export function taskQueryOf(values: TaskFilterValues): TaskQuery {
  const { type, state, tenant, label, parent, since, until } = values;
  const nowMs = Date.now();
  const time = (option: string, text: string | undefined): Date | undefined =>
    text === undefined ? undefined : new Date(pastTime(option, text, nowMs));
  return defined({
    type,
    state: state?.map((text) => oneOf('state', taskStates, text)),
    tenant,
    labels: label === undefined ? undefined : pairs('label', label),
    parentId: parent,
    enqueuedFrom: time('since', since),
    enqueuedBefore: time('until', until),
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
