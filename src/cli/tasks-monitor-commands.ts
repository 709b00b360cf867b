// `millrace tasks monitor`, `tasks groups`: the ends of all jobs by a durable group, and who reads the streams of tasks.

import { consumerGroups } from '../contracts/subjects.ts';
import { forgetMonitors, monitorTasks, taskGroups } from '../platform/monitor-tasks.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { outboxOnRecord } from './on-record.ts';
import { openFolderTasks, tasksOption, tasksSections } from './open-tasks.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeOption } from './store-option.ts';
import { writeOut } from './write-out.ts';

const options = { ...tasksOption, ...jsonOption } as const;
const monitorOptions = {
  ...options,
  ...storeOption,
  group: {
    type: 'string',
    value: 'name',
    summary: `who reads together; another name begins with the first end that is kept (${consumerGroups.monitors})`,
  },
  once: { type: 'boolean', summary: 'ends when nothing is left' },
  forget: { type: 'boolean', summary: 'deletes the group, which holds the streams until then' },
} as const;

export const tasksMonitorCommand: Command = {
  name: 'tasks monitor',
  summary: 'tells of every end of a job, going on where the group was, until Ctrl-C',
  usage: 'tasks monitor [--group <name>] [--once | --forget]',
  options: monitorOptions,
  examples: [
    'millrace tasks monitor --json',
    'millrace tasks monitor --group pager --once',
    'millrace tasks monitor --group pager --forget',
  ],
  sections: tasksSections,
  async run(context) {
    const { stdout, signal, paint } = context;
    const name = 'tasks monitor';
    const { values, positionals } = readArgs({ name, args: context.args }, monitorOptions);
    if (positionals.length > 0) throw usage(`${name} takes options only`);
    if (values.forget === true && values.once === true) {
      throw usage('--forget reads nothing: leave out --once');
    }
    await using opened = await openFolderTasks(context, values.tasks);
    const bus = await opened.bus();
    const { group = consumerGroups.monitors } = values;
    if (values.forget === true) {
      const deed = { action: 'task.forget-monitors', target: group, given: values.store };
      const forgotten = await outboxOnRecord(context, deed, () => forgetMonitors(bus, group));
      const text = forgotten ? `forgot ${group}` : `there is no group ${group}`;
      stdout.write(
        values.json === true ? `${JSON.stringify({ group, forgotten })}\n` : `${text}\n`,
      );
      return exitCodes.ok;
    }
    const how = { group, isOnce: values.once, signal };
    for await (const { at, tenant, deliveryCount, signal: told } of await monitorTasks(bus, how)) {
      const { taskId, state, error } = told;
      const text =
        values.json === true
          ? JSON.stringify({ at, tenant, deliveryCount, ...told })
          : `${paint.dim(at.toISOString())}  ${String(state).padEnd(9)}  ${paint.bold(String(taskId))}  ${typeof error === 'string' ? error : ''}`.trimEnd();
      await writeOut(stdout, `${text}\n`, signal);
    }
    return exitCodes.ok;
  },
};

export const tasksGroupsCommand: Command = {
  name: 'tasks groups',
  summary: 'shows who reads the streams of tasks, and how far each is behind',
  usage: 'tasks groups',
  options,
  examples: ['millrace tasks groups', 'millrace tasks groups --json'],
  sections: tasksSections,
  async run(context) {
    const { stdout, stderr, paint } = context;
    const { values } = readArgs({ name: 'tasks groups', args: context.args }, options);
    await using opened = await openFolderTasks(context, values.tasks);
    const groups = await taskGroups(await opened.bus());
    for (const each of groups) {
      const { name, subject, lag, pending } = each;
      stdout.write(
        values.json === true
          ? `${JSON.stringify(each)}\n`
          : `${paint.bold(name)}  ${paint.dim(subject)}  ${grouped(lag)} behind, ${grouped(pending)} held\n`,
      );
    }
    if (groups.length === 0 && values.json !== true) stderr.write('nobody reads them\n');
    return exitCodes.ok;
  },
};
