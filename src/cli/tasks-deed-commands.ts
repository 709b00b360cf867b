// `millrace tasks cancel`, `tasks retry`: one job, several, or all of a filter. On record.

import { filterText } from '../platform/audit-log.ts';
import type { BulkOptions, BulkOutcome, BulkProgress, TaskQuery, Tasks } from '../tasks/tasks.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { outboxOnRecord } from './on-record.ts';
import {
  openFolderTasks,
  taskFilterOptions,
  taskQueryOf,
  tasksOption,
  tasksSections,
  type TaskFilterValues,
} from './open-tasks.ts';
import { createProgress } from './progress.ts';
import { grouped, progressBar } from './progress-bar.ts';
import { jsonOption, storeOption } from './store-option.ts';

const common = {
  ...tasksOption,
  ...storeOption,
  ...taskFilterOptions,
  all: { type: 'boolean', summary: 'all jobs' },
  yes: { type: 'boolean', summary: 'says that several are meant' },
  ...jsonOption,
} as const;

const cancelOptions = {
  ...common,
  reason: { type: 'string', value: 'text', summary: 'why; kept with the job' },
} as const;
const retryOptions = {
  ...common,
  'from-step': {
    type: 'string',
    value: 'name',
    summary: 'this step and those behind it run again',
  },
} as const;

interface DeedValues extends TaskFilterValues {
  readonly tasks?: string | undefined;
  readonly store?: string | undefined;
  readonly all?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

interface AdminAction {
  readonly name: string;
  readonly done: string;
  readonly one: (tasks: Tasks, id: string) => Promise<boolean>;
  readonly many: (tasks: Tasks, query: TaskQuery, how: BulkOptions) => Promise<BulkOutcome>;
}

export const tasksCancelCommand: Command = {
  name: 'tasks cancel',
  summary: 'cancels jobs; those that run are told, and ended by force after their deadline',
  usage: 'tasks cancel (<id>… | --all | <filter>) [--yes]',
  options: cancelOptions,
  examples: [
    'millrace tasks cancel email-send.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --reason mistake',
    'millrace tasks cancel --type email-send --label campaign=spring --yes',
  ],
  sections: tasksSections,
  async run(context) {
    const name = 'tasks cancel';
    const { values, positionals } = readArgs({ name, args: context.args }, cancelOptions);
    const { reason } = values;
    return carryOut(
      context,
      { values, ids: positionals },
      {
        name,
        done: 'cancelled',
        one: (tasks, id) => tasks.cancel(id, { reason }),
        many: (tasks, query, how) => tasks.cancelMany(query, { ...how, reason }),
      },
    );
  },
};

export const tasksRetryCommand: Command = {
  name: 'tasks retry',
  summary: 'runs jobs that have ended again; finished steps stay finished',
  usage: 'tasks retry (<id>… | --all | <filter>) [--yes]',
  options: retryOptions,
  examples: [
    'millrace tasks retry report-gen.01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --from-step render',
    'millrace tasks retry --type email-send --state failed --since 12h --yes',
  ],
  sections: tasksSections,
  async run(context) {
    const name = 'tasks retry';
    const { values, positionals } = readArgs({ name, args: context.args }, retryOptions);
    const { 'from-step': fromStep } = values;
    if (fromStep !== undefined && positionals.length === 0) {
      throw usage('--from-step is for jobs that are named: their steps are their own');
    }
    return carryOut(
      context,
      { values, ids: positionals },
      {
        name,
        done: 'due again',
        one: (tasks, id) => tasks.retry(id, { fromStep }),
        many: (tasks, query, how) => tasks.retryMany(query, how),
      },
    );
  },
};

async function carryOut(
  context: CommandContext,
  { values, ids }: { readonly values: DeedValues; readonly ids: readonly string[] },
  deed: AdminAction,
): Promise<number> {
  const { stdout, stderr, signal, paint } = context;
  const query = taskQueryOf(values, Date.now());
  const ways = [ids.length > 0, values.all === true, Object.keys(query).length > 0];
  if (ways.filter(Boolean).length !== 1) {
    throw usage(`${deed.name} takes ids, a filter (such as --type), or --all`);
  }
  if (ids.length === 0 && values.yes !== true) {
    throw usage('several jobs may be meant: pass --yes if that is so');
  }
  await using opened = await openFolderTasks(context, values.tasks);
  const { tasks } = opened;
  const what = {
    action: deed.name.replace('tasks ', 'task.'),
    target: ids.length > 0 ? ids.join(' ').slice(0, 300) : filterText(query),
    given: values.store,
  };
  const outcome = await outboxOnRecord(context, what, async () => {
    if (ids.length === 0) {
      const progress = createProgress(stderr);
      const onProgress = (told: BulkProgress): void => progress.show(howFar(told));
      return deed.many(tasks, query, { signal, onProgress }).finally(() => progress.clear());
    }
    const all = { changed: 0, skipped: 0 };
    for (const id of ids) {
      if (await deed.one(tasks, id)) all.changed += 1;
      else all.skipped += 1;
    }
    return all;
  });
  const { changed, skipped } = outcome;
  const rest = skipped === 0 ? '' : `, ${grouped(skipped)} left as they were`;
  stdout.write(
    values.json === true
      ? `${JSON.stringify(outcome)}\n`
      : `${paint.green(deed.done)} ${grouped(changed)}${rest}\n`,
  );
  return ids.length > changed ? exitCodes.failed : exitCodes.ok;
}

function howFar({ changed, skipped, matching }: BulkProgress): string {
  const seen = changed + skipped;
  if (matching === undefined || matching === 0) return `${grouped(seen)} jobs`;
  // More may have come since.
  const share = Math.min(1, seen / matching);
  return progressBar(share, `${grouped(seen)} of ${grouped(Math.max(seen, matching))} jobs`);
}
