// `millrace outbox …`: shows, replays, purges and archives messages, and pauses destinations.

import { resolve } from 'node:path';
import { MillraceError } from '../../foundation/error.ts';
import { outboxLimits } from '../../outbox/outbox-limits.ts';
import type { OutboxFilter } from '../../outbox/outbox-ledger.ts';
import type { OutboxMessage, OutboxStatus } from '../../outbox/outbox-message.ts';
import { filterText } from '../../platform/audit-log.ts';
import { auditedIfStoreExists, byOption, operatorName } from '../audit.ts';
import { defineCommand, exitCodes, usage, type Command, type Values } from '../command.ts';
import {
  bulkFilter,
  bulkOptions,
  checkConfirmed,
  defined,
  durationMs,
  flag,
  oneOf,
  option,
  pageSizeOf,
  pageSizeOption,
  pastTime,
  sinceOption,
  tenantOption,
} from '../options.ts';
import { openOutbox, outboxOption } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import { createProgress } from '../terminal/progress.ts';
import { fieldLines, grouped } from '../terminal/text.ts';
import { outboxRun } from './outbox-run.ts';

const statuses = ['pending', 'claimed', 'failed', 'dead', 'discarded', 'sent'] as const;
const statusOf = oneOf(statuses);

const filterOptions = {
  to: option('type', 'only this destination, such as kafka:payments'),
  ...tenantOption,
  ...sinceOption,
};

const olderThanOption = {
  'older-than': option('time', 'minimum time since sending, such as 30d'),
};

const list = defineCommand({
  name: 'outbox list',
  summary: 'lists outbox messages, newest first (NDJSON with --json)',
  usage: '[options]',
  options: {
    ...outboxOption,
    ...filterOptions,
    status: option('status', `${statuses.join(', ')} (default: all)`),
    ...pageSizeOption,
    after: option('id', 'last id of the previous page'),
  },
  examples: [
    'millrace outbox list --status dead',
    'millrace outbox list --to kafka:payments --since 12h --json',
  ],
  async run(context) {
    const { values, paint } = context;
    const page = { limit: pageSizeOf(values), after: values.after };
    const status = statusOf('status', values.status)?.toUpperCase() as OutboxStatus | undefined;
    await using ledger = await openOutbox(context, values.store);
    const items = await ledger.list({ ...filterOf(values), status }, page);
    return {
      items,
      text: items.map((message) => messageLine(message, paint)).join(''),
      none: 'no messages',
      next: items.length === page.limit ? items.at(-1)?.id : undefined,
    };
  },
});

const show = defineCommand({
  name: 'outbox show',
  summary: 'shows an outbox message with its payload, headers and last error',
  usage: '<id>',
  options: outboxOption,
  examples: ['millrace outbox show 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json'],
  argument: 'id',
  async run(context) {
    const { argument: id, paint } = context;
    await using ledger = await openOutbox(context, context.values.store);
    const message = await ledger.find(id);
    if (message === undefined) {
      throw new MillraceError('OUTBOX_UNKNOWN', `unknown message '${id}'`, {
        details: { id },
      });
    }
    const fields = Object.entries({ ...message, status: statusText(message, paint) });
    const text = fieldLines(fields, { width: 16, paintName: (name) => paint.cyan(name) });
    return { document: message, text };
  },
});

const replay = defineCommand({
  name: 'outbox replay',
  summary: 'makes dead messages due again, with all their attempts',
  usage: '(<id>… | --all | <filter>) [--yes]',
  options: {
    ...outboxOption,
    ...filterOptions,
    ...bulkOptions('all dead messages'),
  },
  examples: [
    'millrace outbox replay 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77',
    'millrace outbox replay --to webhook:partner-x --since 12h --yes',
    'millrace outbox replay --all --yes --json',
  ],
  hasArguments: true,
  async run(context) {
    const { values, positionals: ids, paint } = context;
    const filter = bulkFilter(context, filterOf(values), {
      example: '--to',
      warning: 'this may send many messages again',
    });
    await using ledger = await openOutbox(context, values.store);
    const action = {
      action: 'outbox.replay',
      target: filterText(filter),
      storeUrl: values.store,
    };
    const replayed = await auditedIfStoreExists(context, action, () => ledger.replay(filter));
    return {
      json: { replayed },
      text: `${paint.green('due again')} ${grouped(replayed)}`,
      // Some of the given ids are unknown or not dead.
      exitCode: ids.length > replayed ? exitCodes.failed : exitCodes.ok,
    };
  },
});

const purge = defineCommand({
  name: 'outbox purge',
  summary: 'deletes sent messages; their events can then be enqueued again',
  usage: '--older-than <time> --yes',
  options: {
    ...outboxOption,
    ...olderThanOption,
    yes: flag('confirms the deletion'),
  },
  examples: ['millrace outbox purge --older-than 30d --yes'],
  async run(context) {
    const { name, values, signal, paint } = context;
    const before = sentBeforeOf(values);
    if (before === undefined) throw usage(`${name} needs --older-than, such as --older-than 30d`);
    checkConfirmed(values, 'purged messages cannot be restored');
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
    return { json: { purged }, text: `${paint.green('purged')} ${grouped(purged)}` };
  },
});

const archive = defineCommand({
  name: 'outbox archive',
  summary: 'moves sent messages into a file; their events can then be enqueued again',
  usage: '--older-than <time> --to <file>',
  options: {
    ...outboxOption,
    ...olderThanOption,
    to: option('file', 'NDJSON file; an existing one is appended to, .gz compresses'),
  },
  examples: ['millrace outbox archive --older-than 30d --to sent.ndjson.gz'],
  async run(context) {
    const { name, values, stderr, signal, paint } = context;
    const { to } = values;
    const sentBefore = sentBeforeOf(values);
    if (sentBefore === undefined || to === undefined) {
      throw usage(`${name} needs --older-than, such as 30d, and --to, such as sent.ndjson.gz`);
    }
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
    return {
      json: { archived, to },
      text: `${paint.green('archived')} ${grouped(archived)} to ${to}`,
    };
  },
});

/** Dispatchers in all processes follow the change with their next claim. */
function pauseCommand(verb: 'pause' | 'resume', summary: string): Command {
  const name = `outbox ${verb}`;
  return defineCommand({
    name,
    summary,
    usage: '<destination>',
    options: { ...outboxOption, ...byOption },
    examples: [`millrace ${name} webhook:partner-x`],
    argument: 'destination, such as webhook:partner-x',
    async run(context) {
      const { values, argument: destination, paint } = context;
      await using ledger = await openOutbox(context, values.store);
      const action = { action: `outbox.${verb}`, target: destination, storeUrl: values.store };
      const changed = await auditedIfStoreExists(context, action, () =>
        verb === 'pause'
          ? ledger.pause(destination, values.by ?? operatorName(context))
          : ledger.resume(destination),
      );
      const done = changed ? paint.green(`${verb}d`) : paint.dim(`already ${verb}d:`);
      return {
        json: { destination, paused: verb === 'pause', changed },
        text: `${done} ${destination}`,
      };
    },
  });
}

export const outboxCommands: readonly Command[] = [
  outboxRun,
  list,
  show,
  replay,
  purge,
  archive,
  pauseCommand('pause', 'pauses sending to a destination'),
  pauseCommand('resume', 'resumes sending to a paused destination'),
];

/** Only the given fields: a bulk command rejects an empty filter. */
function filterOf({ to, tenant, since }: Values<typeof filterOptions>): OutboxFilter {
  return defined({
    integrationType: to,
    tenantId: tenant,
    since: pastTime('since', since),
  });
}

function sentBeforeOf(values: Values<typeof olderThanOption>): Date | undefined {
  const ms = durationMs('older-than', values['older-than']);
  return ms === undefined ? undefined : new Date(Date.now() - ms);
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
