// `millrace dlq …`: shows, replays, discards and annotates the dead letters of subscriptions.

import { systemClock } from '../../foundation/clock.ts';
import { filterText } from '../../platform/audit-log.ts';
import type { DeadLetter, DeadLetterFilter } from '../../subscriptions/dead-letter.ts';
import { workersOf } from '../../subscriptions/subscription-admin.ts';
import type { SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import { audited, byOption, operatorName } from '../audit.ts';
import {
  defineCommand,
  exitCodes,
  usage,
  type Command,
  type CommandContext,
  type CommandResult,
  type Values,
} from '../command.ts';
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
import { storeOption } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import { createProgress, progressBar } from '../terminal/progress.ts';
import { fieldLines, grouped } from '../terminal/text.ts';
import { openSubscriptions } from './subscriptions.ts';

const statuses = ['pending', 'replayed', 'discarded', 'all'] as const;
const statusOf = oneOf(statuses);

const filterOptions = {
  subscription: option('name', 'only of this subscription'),
  type: option('event-type', 'only of this event type'),
  ...tenantOption,
  stream: option('stream', 'only of this stream'),
  ...sinceOption,
};

const list = defineCommand({
  name: 'dlq list',
  summary: 'lists dead letters, oldest first (NDJSON with --json)',
  usage: '[options]',
  options: {
    ...storeOption,
    ...filterOptions,
    status: option('status', `${statuses.join(', ')} (default: pending)`),
    ...pageSizeOption,
    after: option('id', 'last id of the previous page'),
  },
  examples: [
    'millrace dlq list',
    'millrace dlq list --subscription sub:notify:greetings:v1 --since 12h',
    'millrace dlq list --status all --limit 100 --after <id of the last one> --json',
  ],
  async run(context) {
    const { values, paint } = context;
    const { after } = values;
    const limit = pageSizeOf(values);
    if (limit < 1) throw usage('--limit must be at least 1');
    const status = statusOf('status', values.status ?? 'pending');
    const filter = { ...filterOf(values), ...(status === 'all' ? {} : { status }) };
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, storage } = subscriptions;
    // Reject an unknown id: the list would silently start at the first page.
    if (after !== undefined) await admin.letter(after);
    const items = await storage.deadLetters.list(filter, { limit, after });
    return {
      items,
      text: items.map((letter) => letterLine(letter, paint)).join(''),
      none: 'no dead letters',
      next: items.length === limit ? items.at(-1)?.id : undefined,
    };
  },
});

const show = defineCommand({
  name: 'dlq show',
  summary: 'shows a dead letter with its payload and all attempts',
  usage: '<id>',
  options: storeOption,
  examples: ['millrace dlq show 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json'],
  argument: 'id',
  async run(context) {
    await using subscriptions = await openSubscriptions(context, context.values.store);
    const letter = await subscriptions.admin.letter(context.argument);
    return { document: letter, text: letterPage(letter, context.paint) };
  },
});

const replay = defineCommand({
  name: 'dlq replay',
  summary: 'retries dead letters in the handler that failed; other handlers do not run',
  usage: '(<id>… | --all | <filter>) [--yes] [--wait]',
  options: {
    ...storeOption,
    ...filterOptions,
    ...bulkOptions('all pending dead letters'),
    wait: flag('waits until each dead letter has succeeded or failed'),
    timeout: option('time', 'with --wait: maximum time, such as 90s or 15m'),
    ...byOption,
  },
  examples: [
    'millrace dlq replay 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --wait',
    'millrace dlq replay --subscription sub:notify:greetings:v1 --since 12h --yes',
    'millrace dlq replay --all --yes --wait --timeout 5m --json',
  ],
  hasArguments: true,
  async run(context) {
    const { values, positionals: ids } = context;
    const filter = bulkFilter<DeadLetterFilter>(context, filterOf(values), {
      example: '--subscription',
      warning: 'this may retry many dead letters',
    });
    if (values.timeout !== undefined && values.wait !== true) {
      throw usage('--timeout requires --wait');
    }
    const timeoutMs = durationMs('timeout', values.timeout) ?? Number.POSITIVE_INFINITY;
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, storage, store } = subscriptions;
    const by = values.by ?? operatorName(context);
    const target = ids.length === 1 ? String(ids[0]) : filterText(filter);
    const action = { store, action: 'dead-letter.replay', target };
    // With --wait, list the ids first: after the replay the filter matches other dead letters.
    const awaited =
      values.wait === true && ids.length === 0 ? await pendingIds(storage, filter) : ids;
    const requested = await audited(context, action, async () => {
      if (ids.length > 0) {
        // Replay one by one, so the error names an id that is unknown or not pending.
        for (const id of ids) await admin.replay(id, { by });
        return ids.length;
      }
      if (values.wait !== true) return admin.replayAll(filter, { by });
      for (const page of pagesOf(awaited)) await admin.replayAll({ ids: page }, { by });
      return awaited.length;
    });
    if (values.wait !== true) return replayResult({ requested }, context.paint);
    const [first] = awaited;
    if (first !== undefined) {
      const { handler } = await admin.letter(first);
      if ((await workersOf(storage, handler)) === 0) {
        context.stderr.write(`no process runs ${handler}: the replay starts when one does\n`);
      }
    }
    const outcome = await whenReplayed(context, storage, awaited, timeoutMs);
    return replayResult(outcome, context.paint);
  },
});

const discard = defineCommand({
  name: 'dlq discard',
  summary: 'discards dead letters; events parked after them are handled',
  usage: '(<id> | --all | <filter>) --reason <text> [--yes]',
  options: {
    ...storeOption,
    ...filterOptions,
    all: flag('all pending dead letters'),
    reason: option('text', 'reason, stored with the dead letter'),
    yes: flag('confirms a bulk operation'),
    ...byOption,
  },
  examples: [
    `millrace dlq discard 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --reason 'a test payment'`,
    `millrace dlq discard --type account.credited.v1 --tenant demo --reason 'demo data' --yes`,
  ],
  hasArguments: true,
  async run(context) {
    const { name, values, positionals: ids, paint } = context;
    const { reason } = values;
    if (reason === undefined || reason.trim() === '') throw usage(`${name} needs a --reason`);
    const warning = 'discarded dead letters cannot be restored';
    const filter = bulkFilter<DeadLetterFilter>(context, filterOf(values), {
      example: '--subscription',
      warning,
    });
    const [id] = ids;
    const isOne = ids.length === 1 && id !== undefined;
    if (!isOne) checkConfirmed(values, warning);
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, store } = subscriptions;
    const request = { by: values.by ?? operatorName(context), reason };
    const target = isOne ? id : filterText(filter);
    const action = { store, action: 'dead-letter.discard', target };
    const discarded = await audited(context, action, async () => {
      if (!isOne) return admin.discardAll(filter, request);
      // The error names an id that is unknown or not pending.
      await admin.discard(id, request);
      return 1;
    });
    return { json: { discarded }, text: `${paint.green('discarded')} ${grouped(discarded)}` };
  },
});

const note = defineCommand({
  name: 'dlq note',
  summary: 'sets the note of a dead letter',
  usage: '<id> <text>',
  options: storeOption,
  examples: ["millrace dlq note 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 'contacted the bank'"],
  hasArguments: true,
  async run(context) {
    const [id, notes, ...rest] = context.positionals;
    if (id === undefined || notes === undefined || rest.length > 0) {
      throw usage('dlq note needs an id and one note in quotes');
    }
    await using subscriptions = await openSubscriptions(context, context.values.store);
    const { store, admin } = subscriptions;
    const action = { store, action: 'dead-letter.note', target: id };
    await audited(context, action, () => admin.note(id, notes));
    return { json: { id, notes }, text: `${context.paint.green('noted')} ${id}` };
  },
});

export const deadLetterCommands: readonly Command[] = [list, show, replay, discard, note];

/** Only the given fields: a bulk command rejects an empty filter. */
function filterOf(values: Values<typeof filterOptions>): DeadLetterFilter {
  const { subscription, type, tenant, stream, since } = values;
  return defined({
    handler: subscription,
    eventType: type,
    tenant,
    stream,
    since: pastTime('since', since)?.toISOString(),
  });
}

interface ReplayOutcome {
  readonly requested: number;
  readonly replayed?: number;
  readonly failed?: number;
  /** The dead letters that were not retried before the timeout. */
  readonly left?: number;
}

const pollMs = 100;
const pageSize = 500;

async function whenReplayed(
  { stderr, signal }: CommandContext,
  { deadLetters }: SubscriptionStorage,
  ids: readonly string[],
  timeoutMs: number,
): Promise<ReplayOutcome> {
  const count = async (more: DeadLetterFilter): Promise<number> => {
    let sum = 0;
    for (const page of pagesOf(ids)) sum += await deadLetters.count({ ids: page, ...more });
    return sum;
  };
  const progress = createProgress(stderr);
  const endMs = performance.now() + timeoutMs;
  const requested = ids.length;
  try {
    for (;;) {
      const left = await count({ status: 'pending', replayRequested: true });
      const text = `${grouped(requested - left)} of ${grouped(requested)}`;
      progress.show(progressBar(requested === 0 ? 1 : (requested - left) / requested, text));
      if (left === 0 || performance.now() >= endMs) {
        const replayed = await count({ status: 'replayed' });
        // A dead letter that failed again is pending without a requested replay.
        const failed = await count({ status: 'pending', replayRequested: false });
        return { requested, replayed, failed, left };
      }
      await systemClock.sleep(pollMs, signal);
    }
  } finally {
    progress.clear();
  }
}

function replayResult(outcome: ReplayOutcome, paint: Paint): CommandResult {
  const { requested, replayed, failed = 0, left = 0 } = outcome;
  const done =
    replayed === undefined
      ? `${paint.green('replay requested:')} ${grouped(requested)}`
      : `${paint.green('replayed')} ${grouped(replayed)}`;
  const parts = [
    done,
    ...(failed > 0 ? [`${grouped(failed)} failed again`] : []),
    ...(left > 0 ? [`${grouped(left)} not retried yet`] : []),
  ];
  const exitCode = failed > 0 || left > 0 ? exitCodes.failed : exitCodes.ok;
  return { json: outcome, text: parts.join(', '), exitCode };
}

async function pendingIds(
  { deadLetters }: SubscriptionStorage,
  filter: DeadLetterFilter,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const page = await deadLetters.list(
      { ...filter, status: 'pending' },
      { limit: pageSize, after: ids.at(-1) },
    );
    if (page.length === 0) return ids;
    ids.push(...page.map(({ id }) => id));
  }
}

function pagesOf(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / pageSize) }, (_, at) =>
    ids.slice(at * pageSize, (at + 1) * pageSize),
  );
}

function letterLine(letter: DeadLetter, paint: Paint): string {
  const { id, createdAt, eventType, stream, handler, attempts } = letter;
  const error = letter.error.split('\n')[0] ?? '';
  return `${paint.bold(id)}  ${createdAt}  ${stateText(letter, paint)}  ${paint.cyan(eventType)}  ${stream}
  ${handler}, ${attempts} attempts: ${error}
`;
}

function letterPage(letter: DeadLetter, paint: Paint): string {
  const fields = fieldLines(
    [
      ['id', letter.id],
      ['status', stateText(letter, paint)],
      ['subscription', letter.handler],
      ['event', `${letter.eventType} ${letter.eventId}`],
      ['stream', `${letter.stream} @${letter.revision}, position ${letter.position}`],
      ['tenant', letter.tenant],
      ['correlation', letter.correlationId],
      ['created', letter.createdAt],
      ['parked', letter.parked ? 'later events of the aggregate are queued after it' : null],
      ['requested', letter.replayRequestedAt],
      ['replayed', letter.replayedAt],
      ['by', letter.replayedBy],
      ['discarded', letter.discardedAt],
      ['by', letter.discardedBy],
      ['reason', letter.discardReason],
      ['notes', letter.notes === '' ? null : letter.notes],
      ['error', letter.error],
      ['attempts', letter.attempts],
    ],
    { width: 14, paintName: (name) => paint.cyan(name) },
  );
  const history = letter.history.map(({ at, error }) => `  ${at}  ${error.split('\n')[0] ?? ''}\n`);
  const payload = JSON.stringify(letter.payload, null, 2);
  return `${fields}${history.join('')}${paint.cyan('payload')}\n${payload}\n`;
}

function stateText({ status, replayRequestedAt }: DeadLetter, paint: Paint): string {
  if (status === 'replayed') return paint.green(status);
  if (status === 'discarded') return paint.dim(status);
  return paint.red(replayRequestedAt === null ? status : 'pending, replay requested');
}
