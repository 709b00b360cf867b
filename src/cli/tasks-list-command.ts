// `millrace tasks list`: jobs and how they are, page by page.

import type { Task } from '../tasks/task-record.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import {
  openFolderTasks,
  stateText,
  taskFilterOptions,
  taskQueryOf,
  tasksOption,
  tasksSections,
} from './open-tasks.ts';
import { wholeNumber } from './option-values.ts';
import type { Paint } from './paint.ts';
import { jsonOption } from './store-option.ts';
import { writeOut } from './write-out.ts';

const name = 'tasks list';
const limitDefault = 50;
const options = {
  ...tasksOption,
  ...taskFilterOptions,
  limit: { type: 'string', value: 'N', summary: `at most so many (${limitDefault})` },
  after: { type: 'string', value: 'cursor', summary: 'the page behind this one' },
  ...jsonOption,
} as const;

export const tasksListCommand: Command = {
  name,
  summary: 'shows jobs, newest first, with --json as NDJSON',
  usage: `${name} [options]`,
  options,
  examples: [
    `millrace ${name} --type email-send --state failed`,
    `millrace ${name} --label campaign=spring --since 12h --json`,
  ],
  sections: tasksSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length > 0) throw usage(`${name} takes no argument: tasks show takes an id`);
    const limit = wholeNumber('limit', values.limit) ?? limitDefault;
    const query = taskQueryOf(values, Date.now());
    await using opened = await openFolderTasks(context, values.tasks);
    const page = await opened.tasks.list(query, { limit, cursor: values.after });
    const isJson = values.json === true;
    const text = page.tasks.map((task) =>
      isJson ? `${JSON.stringify(task)}\n` : taskLine(task, paint),
    );
    await writeOut(stdout, text.join(''), signal);
    if (isJson) return exitCodes.ok;
    if (page.tasks.length === 0) stderr.write('no jobs\n');
    if (page.cursor !== undefined) stderr.write(`for more: --after ${page.cursor}\n`);
    return exitCodes.ok;
  },
};

function taskLine(task: Task, paint: Paint): string {
  const { id, enqueuedAt, tenant, state, progress, error, attempt } = task;
  // Of a completed one it would say no more than what its handler told last.
  const far = progress === undefined || state === 'completed' ? '' : ` ${progress.percent} %`;
  const whose = tenant === undefined ? '' : `  ${tenant}`;
  const why = error === undefined ? '' : `: ${error.message.split('\n')[0] ?? ''}`;
  return `${paint.bold(id)}  ${enqueuedAt.toISOString()}  ${stateText(task, paint)}${far}, attempt ${attempt}${whose}${why}\n`;
}
