// `millrace tasks …` for administrators: cancels and retries jobs, pauses and drains task types, and
// monitors the results of all jobs. Changes are audited.

import { consumerGroups } from '../../contracts/subjects.ts';
import { filterText } from '../../platform/audit-log.ts';
import type {
  BulkOptions,
  BulkOutcome,
  BulkProgress,
  TaskQuery,
  Tasks,
} from '../../tasks/tasks.ts';
import { auditedIfStoreExists } from '../audit.ts';
import {
  defineCommand,
  exitCodes,
  usage,
  type Command,
  type CommandContext,
  type CommandResult,
  type Values,
} from '../command.ts';
import { bulkFilter, bulkOptions, flag, option } from '../options.ts';
import { auditStoreOption } from '../stores.ts';
import { createProgress, progressBar } from '../terminal/progress.ts';
import { grouped } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';
import { openFolderTasks, taskFilterOptions, taskQueryOf, tasksOption } from './tasks.ts';

const bulkTaskOptions = {
  ...tasksOption,
  ...auditStoreOption,
  ...taskFilterOptions,
  ...bulkOptions('all jobs'),
};

const cancel = defineCommand({
  name: 'tasks cancel',
  summary: 'cancels jobs; running jobs get a signal and are terminated after cancel_deadline',
  usage: '(<id>… | --all | <filter>) [--yes]',
  options: { ...bulkTaskOptions, reason: option('text', 'reason, stored with the job') },
  examples: [
    'millrace tasks cancel email-send.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --reason mistake',
    'millrace tasks cancel --type email-send --label campaign=spring --yes',
  ],
  hasArguments: true,
  async run(context) {
    const { reason } = context.values;
    return runBulkAction(context, {
      done: 'cancelled',
      one: (tasks, id) => tasks.cancel(id, { reason }),
      many: (tasks, query, options) => tasks.cancelMany(query, { ...options, reason }),
    });
  },
});

const retry = defineCommand({
  name: 'tasks retry',
  summary: 'runs finished jobs again; completed steps are not repeated',
  usage: '(<id>… | --all | <filter>) [--yes]',
  options: {
    ...bulkTaskOptions,
    'from-step': option('name', 'repeats this step and all later ones'),
  },
  examples: [
    'millrace tasks retry report-gen.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --from-step render',
    'millrace tasks retry --type email-send --state failed --since 12h --yes',
  ],
  hasArguments: true,
  async run(context) {
    const { 'from-step': fromStep } = context.values;
    if (fromStep !== undefined && context.positionals.length === 0) {
      throw usage('--from-step requires job ids');
    }
    return runBulkAction(context, {
      done: 'due again',
      one: (tasks, id) => tasks.retry(id, { fromStep }),
      many: (tasks, query, options) => tasks.retryMany(query, options),
    });
  },
});

function modeCommand(verb: 'pause' | 'resume' | 'drain', summary: string): Command {
  const name = `tasks ${verb}`;
  return defineCommand({
    name,
    summary,
    usage: '<type>',
    options: { ...tasksOption, ...auditStoreOption },
    examples: [`millrace ${name} email-send`],
    argument: 'task type, such as email-send',
    async run(context) {
      const { values, argument: type } = context;
      await using opened = await openFolderTasks(context, values.tasks);
      const { tasks } = opened;
      const action = { action: `task.${verb}`, target: type, storeUrl: values.store };
      await auditedIfStoreExists(context, action, () => tasks[verb](type));
      const mode = (await tasks.modes())[type] ?? 'open';
      return { json: { type, mode }, text: `${type} is ${mode}` };
    },
  });
}

const monitor = defineCommand({
  name: 'tasks monitor',
  summary: 'prints the result of every finished job from the position of the group, until Ctrl-C',
  usage: '[--group <name>] [--once | --forget]',
  options: {
    ...tasksOption,
    ...auditStoreOption,
    group: option(
      'name',
      `consumer group; a new one starts at the oldest stored result (default: ${consumerGroups.monitors})`,
    ),
    once: flag('stops when no result is left'),
    forget: flag('deletes the group, so that old results can be removed'),
  },
  examples: [
    'millrace tasks monitor --json',
    'millrace tasks monitor --group pager --once',
    'millrace tasks monitor --group pager --forget',
  ],
  async run(context) {
    const { values, stdout, signal, paint } = context;
    if (values.forget === true && values.once === true) {
      throw usage('--forget and --once cannot be combined: choose one');
    }
    const { forgetMonitors, monitorTasks } = await import('../../platform/monitor-tasks.ts');
    await using opened = await openFolderTasks(context, values.tasks);
    const bus = await opened.bus();
    const { group = consumerGroups.monitors } = values;
    if (values.forget === true) {
      const action = { action: 'task.forget-monitors', target: group, storeUrl: values.store };
      const forgotten = await auditedIfStoreExists(context, action, () =>
        forgetMonitors(bus, group),
      );
      return {
        json: { group, forgotten },
        text: forgotten ? `deleted group ${group}` : `unknown group '${group}'`,
      };
    }
    const results = await monitorTasks(bus, { group, isOnce: values.once, signal });
    for await (const { at, tenant, deliveryCount, signal: message } of results) {
      const { taskId, state, error } = message;
      const reason = typeof error === 'string' ? error : '';
      const text =
        values.json === true
          ? JSON.stringify({ at, tenant, deliveryCount, ...message })
          : `${paint.dim(at.toISOString())}  ${String(state).padEnd(9)}  ${paint.bold(String(taskId))}  ${reason}`.trimEnd();
      await writeOut(stdout, `${text}\n`, signal);
    }
    return exitCodes.ok;
  },
});

const groups = defineCommand({
  name: 'tasks groups',
  summary: 'lists the consumer groups of task streams and their lag',
  options: tasksOption,
  examples: ['millrace tasks groups', 'millrace tasks groups --json'],
  async run(context) {
    const { values, paint } = context;
    const { taskGroups } = await import('../../platform/monitor-tasks.ts');
    await using opened = await openFolderTasks(context, values.tasks);
    const items = await taskGroups(await opened.bus());
    const lines = items.map(
      ({ name, subject, lag, pending }) =>
        `${paint.bold(name)}  ${paint.dim(subject)}  ${grouped(lag)} behind, ${grouped(pending)} unacknowledged\n`,
    );
    return { items, text: lines.join(''), none: 'no consumer groups' };
  },
});

export const taskAdminCommands: readonly Command[] = [
  cancel,
  retry,
  modeCommand('pause', 'stops giving jobs of a type to workers; new jobs are accepted'),
  modeCommand('resume', 'ends pause or drain of a task type'),
  modeCommand('drain', 'rejects new jobs of a type; existing jobs still run'),
  monitor,
  groups,
];

interface BulkInvocation extends CommandContext {
  readonly name: string;
  readonly values: Values<typeof bulkTaskOptions>;
  readonly positionals: readonly string[];
}

interface BulkAction {
  /** Printed before the number of changed jobs. */
  readonly done: string;
  readonly one: (tasks: Tasks, id: string) => Promise<boolean>;
  readonly many: (tasks: Tasks, query: TaskQuery, options: BulkOptions) => Promise<BulkOutcome>;
}

async function runBulkAction(
  context: BulkInvocation,
  { done, one, many }: BulkAction,
): Promise<CommandResult> {
  const { name, values, positionals: ids, stderr, signal, paint } = context;
  const query = taskQueryOf(values);
  bulkFilter(context, query, { example: '--type', warning: 'this may change many jobs' });
  await using opened = await openFolderTasks(context, values.tasks);
  const { tasks } = opened;
  const action = {
    action: name.replace('tasks ', 'task.'),
    target: ids.length > 0 ? ids.join(' ').slice(0, 300) : filterText(query),
    storeUrl: values.store,
  };
  const outcome = await auditedIfStoreExists(context, action, async () => {
    if (ids.length === 0) {
      const progress = createProgress(stderr);
      const onProgress = (now: BulkProgress): void => progress.show(progressText(now));
      return many(tasks, query, { signal, onProgress }).finally(() => progress.clear());
    }
    const sum = { changed: 0, skipped: 0 };
    for (const id of ids) {
      if (await one(tasks, id)) sum.changed += 1;
      else sum.skipped += 1;
    }
    return sum;
  });
  const { changed, skipped } = outcome;
  const rest = skipped === 0 ? '' : `, ${grouped(skipped)} unchanged`;
  return {
    json: outcome,
    text: `${paint.green(done)} ${grouped(changed)}${rest}`,
    exitCode: ids.length > changed ? exitCodes.failed : exitCodes.ok,
  };
}

function progressText({ changed, skipped, matching }: BulkProgress): string {
  const seen = changed + skipped;
  if (matching === undefined || matching === 0) return `${grouped(seen)} jobs`;
  // New jobs may match after the count.
  const share = Math.min(1, seen / matching);
  return progressBar(share, `${grouped(seen)} of ${grouped(Math.max(seen, matching))} jobs`);
}
