// `millrace tasks show`: a job with what happened to it, as a timeline.

import { MillraceError } from '../foundation/error.ts';
import type { Task } from '../tasks/task-record.ts';
import type { TimelineEntry } from '../tasks/tasks.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { openFolderTasks, stateText, tasksOption, tasksSections } from './open-tasks.ts';
import type { Paint } from './paint.ts';
import { jsonOption } from './store-option.ts';

const name = 'tasks show';
const options = { ...tasksOption, ...jsonOption } as const;

export const tasksShowCommand: Command = {
  name,
  summary: 'shows a job: its payload, steps, result or error, and its timeline',
  usage: `${name} <id>`,
  options,
  examples: [`millrace ${name} email-send.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77`],
  sections: tasksSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const [id, ...rest] = positionals;
    if (id === undefined || rest.length > 0) throw usage(`${name} takes one id`);
    await using opened = await openFolderTasks(context, values.tasks);
    const task = await opened.tasks.get(id);
    if (task === undefined) {
      throw new MillraceError('TASK_UNKNOWN', `there is no job ${id}`, { details: { id } });
    }
    const timeline = await opened.tasks.timeline(id);
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ task, timeline }, null, 2)}\n`
        : shown(task, timeline, paint),
    );
    return exitCodes.ok;
  },
};

function shown(task: Task, timeline: readonly TimelineEntry[], paint: Paint): string {
  const rows: readonly (readonly [string, unknown])[] = [
    ['state', stateText(task, paint)],
    ['tenant', task.tenant],
    ['attempt', task.attempt],
    ['worker', task.worker],
    ['progress', task.progress],
    ['waits for', task.waitsFor],
    ['due', task.state === 'scheduled' || task.state === 'waiting' ? task.dueAt : undefined],
    ['payload', task.payload],
    ['result', task.result],
    ['error', task.error?.message],
  ];
  const lines = rows
    .filter(([, value]) => value !== undefined)
    .map(([title, value]) => `${paint.cyan(title.padEnd(12))}${textOf(value)}`);
  const startMs = task.enqueuedAt.getTime();
  const events = timeline.map(({ at, what, step, worker, text }) => {
    const about = [step, worker === undefined ? undefined : `by ${worker}`, text];
    const more = about.filter((each) => each !== undefined).join('  ');
    return `  ${paint.dim(later(at.getTime() - startMs).padStart(10))}  ${what.padEnd(18)} ${more}`.trimEnd();
  });
  return [paint.bold(task.id), ...lines, '', ...events, ''].join('\n');
}

function later(ms: number): string {
  if (ms < 1_000) return `+${ms} ms`;
  if (ms < 120_000) return `+${(ms / 1_000).toFixed(1)} s`;
  return `+${Math.round(ms / 60_000)} min`;
}

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'string' ? value : JSON.stringify(value);
}
