// `millrace tasks types`, `tasks workers`, `tasks tail`: what is configured, who works, and what happens now.

import { followTasks } from '../platform/follow-tasks.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { openFolderTasks, tasksOption, tasksSections } from './open-tasks.ts';
import { jsonOption } from './store-option.ts';
import { writeOut } from './write-out.ts';

const options = { ...tasksOption, ...jsonOption } as const;
const tailOptions = {
  ...options,
  type: { type: 'string', value: 'type', summary: 'only this type' },
  tenant: { type: 'string', value: 'key', summary: 'only this tenant' },
} as const;

export const tasksTypesCommand: Command = {
  name: 'tasks types',
  summary: 'shows the configured types, how many jobs they have, and whether they are open',
  usage: 'tasks types',
  options,
  examples: ['millrace tasks types', 'millrace tasks types --json'],
  sections: tasksSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values } = readArgs({ name: 'tasks types', args: context.args }, options);
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
          : `${paint.bold(type.name)}  ${mode}, ${type.workers} at once  ${paint.dim(jobs.join(', ') || 'no jobs')}\n`,
      );
    }
    return exitCodes.ok;
  },
};

export const tasksWorkersCommand: Command = {
  name: 'tasks workers',
  summary: 'shows who works, and who was not heard of any more',
  usage: 'tasks workers',
  options,
  examples: ['millrace tasks workers'],
  sections: tasksSections,
  async run(context) {
    const { stdout, stderr, paint } = context;
    const { values } = readArgs({ name: 'tasks workers', args: context.args }, options);
    await using opened = await openFolderTasks(context, values.tasks);
    const workers = await opened.tasks.workers();
    for (const each of workers) {
      const state = each.isAlive ? paint.green('alive') : paint.red('gone');
      stdout.write(
        values.json === true
          ? `${JSON.stringify(each)}\n`
          : `${paint.bold(each.worker)}  ${state} until ${each.aliveUntil.toISOString()}  ${paint.dim(JSON.stringify(each.about ?? {}))}\n`,
      );
    }
    if (workers.length === 0 && values.json !== true) stderr.write('nobody works\n');
    return exitCodes.ok;
  },
};

export const tasksTailCommand: Command = {
  name: 'tasks tail',
  summary: 'follows what is told of jobs while they run and when they end, until Ctrl-C',
  usage: 'tasks tail [<id>]',
  options: tailOptions,
  examples: [
    'millrace tasks tail --type email-send',
    'millrace tasks tail report-gen.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json',
  ],
  sections: tasksSections,
  async run(context) {
    const { stdout, signal, paint } = context;
    const { values, positionals } = readArgs(
      { name: 'tasks tail', args: context.args },
      tailOptions,
    );
    const [id, ...rest] = positionals;
    if (rest.length > 0) throw usage('tasks tail takes one id, or none');
    await using opened = await openFolderTasks(context, values.tasks);
    const engines = { tasks: opened.tasks, bus: await opened.bus() };
    const query = { id, type: values.type, tenant: values.tenant, signal };
    for await (const { kind, at, signal: told } of await followTasks(engines, query)) {
      const { taskId, type: _type, ...about } = told;
      const text =
        values.json === true
          ? JSON.stringify({ kind, at, ...told })
          : `${paint.dim(at.toISOString())}  ${kind.padEnd(8)}  ${paint.bold(String(taskId))}  ${JSON.stringify(about)}`;
      await writeOut(stdout, `${text}\n`, signal);
    }
    return exitCodes.ok;
  },
};
