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
  noArguments,
  oneArgument,
  printResult,
  usage,
  type Command,
  type CommandContext,
} from '../command.ts';
import { confirmBulkOption, jsonOption } from '../options.ts';
import { storeOption } from '../stores.ts';
import { createProgress, progressBar } from '../terminal/progress.ts';
import { grouped } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';
import {
  openFolderTasks,
  taskFilterOptions,
  taskQueryOf,
  tasksOption,
  tasksSections,
  type TaskFilterValues,
} from './tasks.ts';

const bulkOptions = {
  ...tasksOption,
  ...storeOption,
  ...taskFilterOptions,
  all: { type: 'boolean', summary: 'all jobs' },
  ...confirmBulkOption,
  ...jsonOption,
} as const;

const cancel = defineCommand({
  name: 'tasks cancel',
  summary: 'cancels jobs; running ones get a signal and are ended after cancel_deadline',
  usage: 'tasks cancel (<id>… | --all | <filter>) [--yes]',
  options: {
    ...bulkOptions,
    reason: { type: 'string', value: 'text', summary: 'reason, stored with the job' },
  },
  examples: [
    'millrace tasks cancel email-send.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --reason mistake',
    'millrace tasks cancel --type email-send --label campaign=spring --yes',
  ],
  sections: tasksSections,
  async run(context, { name, values, positionals: ids }) {
    const { reason } = values;
    return runBulkAction(context, values, {
      name,
      ids,
      done: 'cancelled',
      one: (tasks, id) => tasks.cancel(id, { reason }),
      many: (tasks, query, options) => tasks.cancelMany(query, { ...options, reason }),
    });
  },
});

const retry = defineCommand({
  name: 'tasks retry',
  summary: 'runs finished jobs again; completed steps are not repeated',
  usage: 'tasks retry (<id>… | --all | <filter>) [--yes]',
  options: {
    ...bulkOptions,
    'from-step': {
      type: 'string',
      value: 'name',
      summary: 'repeats this step and all later ones',
    },
  },
  examples: [
    'millrace tasks retry report-gen.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --from-step render',
    'millrace tasks retry --type email-send --state failed --since 12h --yes',
  ],
  sections: tasksSections,
  async run(context, { name, values, positionals: ids }) {
    const { 'from-step': fromStep } = values;
    if (fromStep !== undefined && ids.length === 0) {
      throw usage('--from-step requires job ids');
    }
    return runBulkAction(context, values, {
      name,
      ids,
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
    usage: `${name} <type>`,
    options: { ...tasksOption, ...storeOption, ...jsonOption },
    examples: [`millrace ${name} email-send`],
    sections: tasksSections,
    async run(context, input) {
      const { values } = input;
      const type = oneArgument(input, 'task type, such as email-send');
      await using opened = await openFolderTasks(context, values.tasks);
      const { tasks } = opened;
      const action = { action: `task.${verb}`, target: type, storeUrl: values.store };
      await auditedIfStoreExists(context, action, () => tasks[verb](type));
      const mode = (await tasks.modes())[type] ?? 'open';
      return printResult(context, values, { json: { type, mode }, text: `${type} is ${mode}` });
    },
  });
}

const pause = modeCommand('pause', 'stops giving jobs of a type to workers; new jobs are accepted');
const resume = modeCommand('resume', 'ends pause or drain of a task type');
const drain = modeCommand('drain', 'refuses new jobs of a type; existing jobs still run');

const monitor = defineCommand({
  name: 'tasks monitor',
  summary: 'prints the result of every finished job from where the group stopped, until Ctrl-C',
  usage: 'tasks monitor [--group <name>] [--once | --forget]',
  options: {
    ...tasksOption,
    ...jsonOption,
    ...storeOption,
    group: {
      type: 'string',
      value: 'name',
      summary: `consumer group; a new one starts at the oldest stored result (default: ${consumerGroups.monitors})`,
    },
    once: { type: 'boolean', summary: 'stops when no result is left' },
    forget: { type: 'boolean', summary: 'deletes the group, so that old results can be removed' },
  },
  examples: [
    'millrace tasks monitor --json',
    'millrace tasks monitor --group pager --once',
    'millrace tasks monitor --group pager --forget',
  ],
  sections: tasksSections,
  async run(context, input) {
    const { stdout, signal, paint } = context;
    const { values } = input;
    noArguments(input);
    if (values.forget === true && values.once === true) {
      throw usage('--forget and --once exclude each other');
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
      return printResult(context, values, {
        json: { group, forgotten },
        text: forgotten ? `deleted group ${group}` : `there is no group ${group}`,
      });
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
  usage: 'tasks groups',
  options: { ...tasksOption, ...jsonOption },
  examples: ['millrace tasks groups', 'millrace tasks groups --json'],
  sections: tasksSections,
  async run(context, { values }) {
    const { stdout, stderr, paint } = context;
    const { taskGroups } = await import('../../platform/monitor-tasks.ts');
    await using opened = await openFolderTasks(context, values.tasks);
    const all = await taskGroups(await opened.bus());
    for (const each of all) {
      const { name, subject, lag, pending } = each;
      stdout.write(
        values.json === true
          ? `${JSON.stringify(each)}\n`
          : `${paint.bold(name)}  ${paint.dim(subject)}  ${grouped(lag)} behind, ${grouped(pending)} unacknowledged\n`,
      );
    }
    if (all.length === 0 && values.json !== true) stderr.write('no consumer groups\n');
    return exitCodes.ok;
  },
});

export const taskAdminCommands: readonly Command[] = [
  cancel,
  retry,
  pause,
  resume,
  drain,
  monitor,
  groups,
];

interface BulkValues extends TaskFilterValues {
  readonly tasks?: string | undefined;
  readonly store?: string | undefined;
  readonly all?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

interface BulkAction {
  /** The command's name. */
  readonly name: string;
  readonly ids: readonly string[];
  /** Printed before the number of changed jobs. */
  readonly done: string;
  readonly one: (tasks: Tasks, id: string) => Promise<boolean>;
  readonly many: (tasks: Tasks, query: TaskQuery, options: BulkOptions) => Promise<BulkOutcome>;
}

async function runBulkAction(
  context: CommandContext,
  values: BulkValues,
  { name, ids, done, one, many }: BulkAction,
): Promise<number> {
  const { stderr, signal, paint } = context;
  const query = taskQueryOf(values);
  const ways = [ids.length > 0, values.all === true, Object.keys(query).length > 0];
  if (ways.filter(Boolean).length !== 1) {
    throw usage(`${name} takes ids, a filter (such as --type), or --all`);
  }
  if (ids.length === 0 && values.yes !== true) {
    throw usage('this may change many jobs: pass --yes to confirm');
  }
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
  printResult(context, values, {
    json: outcome,
    text: `${paint.green(done)} ${grouped(changed)}${rest}`,
  });
  return ids.length > changed ? exitCodes.failed : exitCodes.ok;
}

function progressText({ changed, skipped, matching }: BulkProgress): string {
  const seen = changed + skipped;
  if (matching === undefined || matching === 0) return `${grouped(seen)} jobs`;
  // New jobs may match after the count.
  const share = Math.min(1, seen / matching);
  return progressBar(share, `${grouped(seen)} of ${grouped(Math.max(seen, matching))} jobs`);
}
