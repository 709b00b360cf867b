// `millrace outbox …`: shows, replays, purges and archives messages, and pauses destinations.

import { resolve } from 'node:path';
import { MillraceError } from '../../foundation/error.ts';
import { outboxLimits } from '../../outbox/outbox-limits.ts';
import type { OutboxFilter } from '../../outbox/outbox-ledger.ts';
import type { OutboxMessage, OutboxStatus } from '../../outbox/outbox-message.ts';
import { filterText } from '../../platform/audit-log.ts';
import { auditedIfStoreExists, byOption, operatorName } from '../audit.ts';
import {
  defineCommand,
  exitCodes,
  noArguments,
  oneArgument,
  printResult,
  usage,
  type Command,
  printPage,
} from '../command.ts';
import {
  confirmBulkOption,
  defined,
  durationMs,
  jsonOption,
  oneOf,
  pastTime,
  wholeNumber,
} from '../options.ts';
import { openOutbox, outboxSections, storeOption } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import { createProgress } from '../terminal/progress.ts';
import { fieldLines, grouped } from '../terminal/text.ts';
import { outboxRun } from './outbox-run.ts';

const statuses = ['pending', 'claimed', 'failed', 'dead', 'sent'] as const;
const limitDefault = 50;

const filterOptions = {
  to: { type: 'string', value: 'type', summary: 'only this destination, such as kafka:payments' },
  tenant: { type: 'string', value: 'key', summary: 'only of this tenant' },
  since: {
    type: 'string',
    value: 'time',
    summary: 'only since 12h ago, 30d ago, or a date and time',
  },
} as const;

const olderThanOption = {
  'older-than': {
    type: 'string',
    value: 'time',
    summary: 'minimum time since sending, such as 30d',
  },
} as const;

const list = defineCommand({
  name: 'outbox list',
  summary: 'lists outbox messages, oldest first (NDJSON with --json)',
  usage: 'outbox list [options]',
  options: {
    ...storeOption,
    ...filterOptions,
    status: { type: 'string', value: 'status', summary: `${statuses.join(', ')} (default: all)` },
    limit: { type: 'string', value: 'N', summary: `page size (default: ${limitDefault})` },
    after: { type: 'string', value: 'id', summary: 'last id of the previous page' },
    ...jsonOption,
  },
  examples: [
    'millrace outbox list --status dead',
    'millrace outbox list --to kafka:payments --since 12h --json',
  ],
  sections: outboxSections,
  async run(context, input) {
    const { values } = input;
    noArguments(input);
    const limit = wholeNumber('limit', values.limit) ?? limitDefault;
    const status =
      values.status === undefined
        ? undefined
        : (oneOf('status', statuses, values.status).toUpperCase() as OutboxStatus);
    await using ledger = await openOutbox(context, values.store);
    const messages = await ledger.list(
      { ...filterOf(values), status },
      { limit, after: values.after },
    );
    return printPage(context, values, {
      items: messages,
      line: (message) => messageLine(message, context.paint),
      none: 'no messages',
      next: messages.length === limit ? messages.at(-1)?.id : undefined,
    });
  },
});

const show = defineCommand({
  name: 'outbox show',
  summary: 'shows an outbox message with its payload, headers and last error',
  usage: 'outbox show <id>',
  options: { ...storeOption, ...jsonOption },
  examples: ['millrace outbox show 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json'],
  sections: outboxSections,
  async run(context, input) {
    const { stdout, paint } = context;
    const { values } = input;
    const id = oneArgument(input, 'id');
    await using ledger = await openOutbox(context, values.store);
    const message = await ledger.find(id);
    if (message === undefined) {
      throw new MillraceError('OUTBOX_UNKNOWN', `the outbox has no message '${id}'`, {
        details: { id },
      });
    }
    const fields = Object.entries({ ...message, status: statusText(message, paint) });
    stdout.write(
      values.json === true
        ? `${JSON.stringify(message, null, 2)}\n`
        : fieldLines(fields, { width: 16, paintName: (name) => paint.cyan(name) }),
    );
    return exitCodes.ok;
  },
});

const replay = defineCommand({
  name: 'outbox replay',
  summary: 'makes dead messages due again, with all their attempts',
  usage: 'outbox replay (<id>… | --all | <filter>) [--yes]',
  options: {
    ...storeOption,
    ...filterOptions,
    all: { type: 'boolean', summary: 'all dead messages' },
    ...confirmBulkOption,
    ...jsonOption,
  },
  examples: [
    'millrace outbox replay 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77',
    'millrace outbox replay --to webhook:partner-x --since 12h --yes',
    'millrace outbox replay --all --yes --json',
  ],
  sections: outboxSections,
  async run(context, { name, values, positionals: ids }) {
    const filter = filterOf(values);
    const ways = [ids.length > 0, values.all === true, Object.keys(filter).length > 0];
    if (ways.filter(Boolean).length !== 1) {
      throw usage(`${name} takes ids, a filter (such as --to), or --all`);
    }
    if (ids.length === 0 && values.yes !== true) {
      throw usage('this may send many messages again: pass --yes to confirm');
    }
    await using ledger = await openOutbox(context, values.store);
    const chosen = ids.length > 0 ? { ids } : filter;
    const replayed = await auditedIfStoreExists(
      context,
      { action: 'outbox.replay', target: filterText(chosen), storeUrl: values.store },
      () => ledger.replay(chosen),
    );
    printResult(context, values, {
      json: { replayed },
      text: `${context.paint.green('due again')} ${grouped(replayed)}`,
    });
    // Some of the given ids are unknown or not dead.
    return ids.length > replayed ? exitCodes.failed : exitCodes.ok;
  },
});

const purge = defineCommand({
  name: 'outbox purge',
  summary: 'deletes sent messages; their events can then be enqueued again',
  usage: 'outbox purge --older-than <time> --yes',
  options: {
    ...storeOption,
    ...olderThanOption,
    yes: { type: 'boolean', summary: 'confirms the deletion' },
    ...jsonOption,
  },
  examples: ['millrace outbox purge --older-than 30d --yes'],
  sections: outboxSections,
  async run(context, { name, values, positionals }) {
    const { signal, paint } = context;
    const { 'older-than': olderThan } = values;
    if (positionals.length > 0 || olderThan === undefined) {
      throw usage(`${name} takes --older-than, such as --older-than 30d`);
    }
    if (values.yes !== true)
      throw usage('purged messages cannot be restored: pass --yes to confirm');
    const before = new Date(Date.now() - durationMs('older-than', olderThan));
    await using ledger = await openOutbox(context, values.store);
    const target = `sent before ${before.toISOString()}`;
    const action = { action: 'outbox.purge', target, storeUrl: values.store };
    const purged = await auditedIfStoreExists(context, action, async () => {
      for (let sum = 0; ;) {
        signal.throwIfAborted();
        const count = await ledger.purge(before, outboxLimits.purgeBatchDefault);
        sum += count;
        if (count < outboxLimits.purgeBatchDefault) return sum;
      }
    });
    return printResult(context, values, {
      json: { purged },
      text: `${paint.green('purged')} ${grouped(purged)}`,
    });
  },
});

const archive = defineCommand({
  name: 'outbox archive',
  summary: 'moves sent messages into a file; their events can then be enqueued again',
  usage: 'outbox archive --older-than <time> --to <file>',
  options: {
    ...storeOption,
    ...olderThanOption,
    to: {
      type: 'string',
      value: 'file',
      summary: 'NDJSON file; an existing one is appended to, .gz compresses',
    },
    ...jsonOption,
  },
  examples: ['millrace outbox archive --older-than 30d --to sent.ndjson.gz'],
  sections: outboxSections,
  async run(context, { name, values, positionals }) {
    const { stderr, signal, paint } = context;
    const { to, 'older-than': olderThan } = values;
    if (positionals.length > 0 || olderThan === undefined || to === undefined) {
      throw usage(`${name} takes --older-than, such as 30d, and --to, such as sent.ndjson.gz`);
    }
    const sentBefore = new Date(Date.now() - durationMs('older-than', olderThan));
    const { archiveOutbox } = await import('../../platform/transfer/archive-outbox.ts');
    await using ledger = await openOutbox(context, values.store);
    const progress = createProgress(stderr);
    let archived = 0;
    try {
      const target = `sent before ${sentBefore.toISOString()}`;
      const action = { action: 'outbox.archive', target, storeUrl: values.store };
      await auditedIfStoreExists(context, action, () =>
        archiveOutbox(ledger, resolve(context.cwd, to), {
          sentBefore,
          signal,
          onProgress(count) {
            archived = count;
            progress.show(`${grouped(count)} messages archived`);
          },
        }),
      );
    } catch (error) {
      if (!signal.aborted) throw error;
      progress.clear();
      stderr.write(
        `interrupted after ${grouped(archived)} messages: run again with the same file\n`,
      );
      return exitCodes.interrupted;
    } finally {
      progress.clear();
    }
    return printResult(context, values, {
      json: { archived, to },
      text: `${paint.green('archived')} ${grouped(archived)} to ${to}`,
    });
  },
});

/** Dispatchers in all processes follow the change with their next claim. */
function pauseCommand(
  verb: 'pause' | 'resume',
  { summary, done }: { readonly summary: string; readonly done: string },
): Command {
  const name = `outbox ${verb}`;
  return defineCommand({
    name,
    summary,
    usage: `${name} <destination>`,
    options: { ...storeOption, ...byOption, ...jsonOption },
    examples: [`millrace ${name} webhook:partner-x`],
    sections: outboxSections,
    async run(context, input) {
      const { paint } = context;
      const { values } = input;
      const destination = oneArgument(input, 'destination, such as webhook:partner-x');
      await using ledger = await openOutbox(context, values.store);
      const action = { action: `outbox.${verb}`, target: destination, storeUrl: values.store };
      const changed = await auditedIfStoreExists(context, action, () =>
        verb === 'pause'
          ? ledger.pause(destination, values.by ?? operatorName(context))
          : ledger.resume(destination),
      );
      const text = changed ? paint.green(done) : paint.dim(`already ${done}:`);
      return printResult(context, values, {
        json: { destination, paused: verb === 'pause', changed },
        text: `${text} ${destination}`,
      });
    },
  });
}

const pause = pauseCommand('pause', {
  summary: 'pauses sending to a destination',
  done: 'paused',
});

const resume = pauseCommand('resume', {
  summary: 'resumes sending to a paused destination',
  done: 'resumed',
});

export const outboxCommands: readonly Command[] = [
  outboxRun,
  list,
  show,
  replay,
  purge,
  archive,
  pause,
  resume,
];

function filterOf(values: {
  readonly to?: string | undefined;
  readonly tenant?: string | undefined;
  readonly since?: string | undefined;
}): OutboxFilter {
  const { to, tenant, since } = values;
  return defined({
    integrationType: to,
    tenantId: tenant,
    since: since === undefined ? undefined : new Date(pastTime('since', since, Date.now())),
  });
}

function messageLine(message: OutboxMessage, paint: Paint): string {
  const { id, createdAt, eventType, integrationType, attempts, maxAttempts, lastError } = message;
  const error = lastError === undefined ? '' : `: ${lastError.split('\n')[0] ?? ''}`;
  return `${paint.bold(id)}  ${createdAt.toISOString()}  ${statusText(message, paint)}  ${paint.cyan(eventType)}
  ${integrationType}, ${attempts} of ${maxAttempts} attempts failed${error}
`;
}

function statusText({ status }: Pick<OutboxMessage, 'status'>, paint: Paint): string {
  if (status === 'SENT') return paint.green(status);
  if (status === 'DEAD') return paint.red(status);
  return status === 'FAILED' ? paint.cyan(status) : paint.dim(status);
}
