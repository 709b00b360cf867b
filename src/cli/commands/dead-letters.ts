// `millrace dlq …`: shows, replays, discards and annotates the dead letters of subscriptions.

import { systemClock } from '../../foundation/clock.ts';
import { filterText } from '../../platform/audit-log.ts';
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterStatus,
} from '../../subscriptions/dead-letter.ts';
import { workersOf } from '../../subscriptions/subscription-admin.ts';
import type { SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import { audited, byOption, operatorName } from '../audit.ts';
import {
  defineCommand,
  exitCodes,
  noArguments,
  oneArgument,
  printResult,
  usage,
  type Command,
  type CommandContext,
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
import { storeOption, storeSections } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import { createProgress, progressBar } from '../terminal/progress.ts';
import { fieldLines, grouped } from '../terminal/text.ts';
import { openSubscriptions } from './subscriptions.ts';

const limitDefault = 50;
const statuses = ['pending', 'replayed', 'discarded', 'all'] as const;

const filterOptions = {
  subscription: { type: 'string', value: 'name', summary: 'only of this subscription' },
  type: { type: 'string', value: 'event-type', summary: 'only of this event type' },
  tenant: { type: 'string', value: 'key', summary: 'only of this tenant' },
  stream: { type: 'string', value: 'stream', summary: 'only of this stream' },
  since: {
    type: 'string',
    value: 'time',
    summary: 'only since 12h ago, 30d ago, or a date and time',
  },
} as const;

const list = defineCommand({
  name: 'dlq list',
  summary: 'lists dead letters, oldest first (NDJSON with --json)',
  usage: 'dlq list [options]',
  options: {
    ...storeOption,
    ...filterOptions,
    status: {
      type: 'string',
      value: 'status',
      summary: `${statuses.join(', ')} (default: pending)`,
    },
    limit: { type: 'string', value: 'N', summary: `page size (default: ${limitDefault})` },
    after: { type: 'string', value: 'id', summary: 'last id of the previous page' },
    ...jsonOption,
  },
  examples: [
    'millrace dlq list',
    'millrace dlq list --subscription sub:notify:greetings:v1 --since 12h',
    'millrace dlq list --status all --limit 100 --after <id of the last one> --json',
  ],
  sections: storeSections,
  async run(context, input) {
    const { values } = input;
    noArguments(input);
    const limit = wholeNumber('limit', values.limit) ?? limitDefault;
    if (limit < 1) throw usage('--limit must be at least 1');
    const filter = {
      ...letterFilterOf(values, Date.now()),
      ...defined({ status: statusOf(values.status) }),
    };
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, storage } = subscriptions;
    // Fails for an unknown id, which would silently start at the first page.
    if (values.after !== undefined) await admin.letter(values.after);
    const letters = await storage.deadLetters.list(filter, {
      limit,
      ...defined({ after: values.after }),
    });
    return printPage(context, values, {
      items: letters,
      line: (letter) => letterLine(letter, context.paint),
      none: 'no dead letters',
      next: letters.length === limit ? letters.at(-1)?.id : undefined,
    });
  },
});

const show = defineCommand({
  name: 'dlq show',
  summary: 'shows a dead letter with its payload and all attempts',
  usage: 'dlq show <id>',
  options: { ...storeOption, ...jsonOption },
  examples: ['millrace dlq show 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json'],
  sections: storeSections,
  async run(context, input) {
    const { stdout, paint } = context;
    const { values } = input;
    const id = oneArgument(input, 'id');
    await using subscriptions = await openSubscriptions(context, values.store);
    const letter = await subscriptions.admin.letter(id);
    stdout.write(
      values.json === true ? `${JSON.stringify(letter, null, 2)}\n` : letterPage(letter, paint),
    );
    return exitCodes.ok;
  },
});

const replay = defineCommand({
  name: 'dlq replay',
  summary: 'retries dead letters in the handler that failed; other handlers do not run',
  usage: 'dlq replay (<id>… | --all | <filter>) [--yes] [--wait]',
  options: {
    ...storeOption,
    ...filterOptions,
    all: { type: 'boolean', summary: 'all pending dead letters' },
    ...confirmBulkOption,
    wait: { type: 'boolean', summary: 'waits until each dead letter has succeeded or failed' },
    timeout: {
      type: 'string',
      value: 'time',
      summary: 'with --wait: maximum time, such as 90s or 15m',
    },
    ...byOption,
    ...jsonOption,
  },
  examples: [
    'millrace dlq replay 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --wait',
    'millrace dlq replay --subscription sub:notify:greetings:v1 --since 12h --yes',
    'millrace dlq replay --all --yes --wait --timeout 5m --json',
  ],
  sections: storeSections,
  async run(context, input) {
    const { values, positionals: ids } = input;
    const filter = chosenLetters(input);
    if (ids.length === 0 && values.yes !== true) {
      throw usage('this may retry many dead letters: pass --yes to confirm');
    }
    if (values.timeout !== undefined && values.wait !== true) {
      throw usage('--timeout requires --wait');
    }
    const timeoutMs =
      values.timeout === undefined
        ? Number.POSITIVE_INFINITY
        : durationMs('timeout', values.timeout);
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, storage, store } = subscriptions;
    const by = values.by ?? operatorName(context);
    const target = ids.length === 1 ? String(ids[0]) : filterText(filter);
    const action = { store, action: 'dead-letter.replay', target };
    // With --wait, the ids are listed before the replay, which changes what the filter matches.
    const awaited =
      values.wait === true && ids.length === 0 ? await pendingIds(storage, filter) : ids;
    const requested = await audited(context, action, async () => {
      if (ids.length > 0) {
        // One by one: an id that is unknown or not pending fails by name.
        for (const id of ids) await admin.replay(id, { by });
        return ids.length;
      }
      if (values.wait !== true) return admin.replayAll(filter, { by });
      for (const page of pagesOf(awaited)) await admin.replayAll({ ids: page }, { by });
      return awaited.length;
    });
    if (values.wait !== true) return printReplay(context, values, { requested });
    const [first] = awaited;
    if (first !== undefined) {
      const { handler } = await admin.letter(first);
      if ((await workersOf(storage, handler)) === 0) {
        context.stderr.write(`no process runs ${handler}: the replay starts when one does\n`);
      }
    }
    return printReplay(context, values, await whenReplayed(context, storage, awaited, timeoutMs));
  },
});

const discard = defineCommand({
  name: 'dlq discard',
  summary: 'discards dead letters; events parked after them are handled',
  usage: 'dlq discard (<id> | --all | <filter>) --reason <text> [--yes]',
  options: {
    ...storeOption,
    ...filterOptions,
    all: { type: 'boolean', summary: 'all pending dead letters' },
    reason: { type: 'string', value: 'text', summary: 'reason, stored with the dead letter' },
    ...confirmBulkOption,
    ...byOption,
    ...jsonOption,
  },
  examples: [
    `millrace dlq discard 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --reason 'a test payment'`,
    `millrace dlq discard --type account.credited.v1 --tenant demo --reason 'demo data' --yes`,
  ],
  sections: storeSections,
  async run(context, input) {
    const { name, values, positionals: ids } = input;
    const { reason } = values;
    if (reason === undefined || reason.trim() === '') throw usage(`${name} needs a --reason`);
    const filter = chosenLetters(input);
    const [id] = ids;
    const isOne = ids.length === 1 && id !== undefined;
    if (!isOne && values.yes !== true) {
      throw usage('discarded dead letters cannot be restored: pass --yes to confirm');
    }
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, store } = subscriptions;
    const request = { by: values.by ?? operatorName(context), reason };
    const target = isOne ? id : filterText(filter);
    const action = { store, action: 'dead-letter.discard', target };
    const discarded = await audited(context, action, async () => {
      if (!isOne) return admin.discardAll(filter, request);
      // Fails by name if the id is unknown or not pending.
      await admin.discard(id, request);
      return 1;
    });
    return printResult(context, values, {
      json: { discarded },
      text: `${context.paint.green('discarded')} ${grouped(discarded)}`,
    });
  },
});

const note = defineCommand({
  name: 'dlq note',
  summary: 'sets the note of a dead letter',
  usage: 'dlq note <id> <text>',
  options: { ...storeOption, ...jsonOption },
  examples: ["millrace dlq note 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 'asked the bank'"],
  sections: storeSections,
  async run(context, { values, positionals }) {
    const [id, notes, ...rest] = positionals;
    if (id === undefined || notes === undefined || rest.length > 0) {
      throw usage('dlq note takes an id and one text, in quotes');
    }
    await using subscriptions = await openSubscriptions(context, values.store);
    const { store, admin } = subscriptions;
    const action = { store, action: 'dead-letter.note', target: id };
    await audited(context, action, () => admin.note(id, notes));
    return printResult(context, values, {
      json: { id, notes },
      text: `${context.paint.green('noted')} ${id}`,
    });
  },
});

export const deadLetterCommands: readonly Command[] = [list, show, replay, discard, note];

interface FilterValues {
  readonly subscription?: string | undefined;
  readonly type?: string | undefined;
  readonly tenant?: string | undefined;
  readonly stream?: string | undefined;
  readonly since?: string | undefined;
  readonly all?: boolean | undefined;
}

function letterFilterOf(values: FilterValues, nowMs: number): DeadLetterFilter {
  const { subscription, type, tenant, stream, since } = values;
  return defined({
    handler: subscription,
    eventType: type,
    tenant,
    stream,
    since: since === undefined ? undefined : pastTime('since', since, nowMs),
  });
}

/** The dead letters that a command changes: given by id, by a filter, or `--all`. */
function chosenLetters({
  name,
  values,
  positionals: ids,
}: {
  readonly name: string;
  readonly values: FilterValues;
  readonly positionals: readonly string[];
}): DeadLetterFilter {
  const filter = letterFilterOf(values, Date.now());
  const ways = [ids.length > 0, values.all === true, Object.keys(filter).length > 0];
  if (ways.filter(Boolean).length !== 1) {
    throw usage(`${name} takes ids, a filter (such as --subscription), or --all`);
  }
  return ids.length > 0 ? { ids } : filter;
}

function statusOf(text: string = 'pending'): DeadLetterStatus | undefined {
  const status = oneOf('status', statuses, text);
  return status === 'all' ? undefined : status;
}

interface ReplayOutcome {
  readonly requested: number;
  readonly replayed?: number;
  readonly failed?: number;
  /** Not retried yet when the timeout expired. */
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

function printReplay(
  context: CommandContext,
  values: { readonly json?: boolean | undefined },
  outcome: ReplayOutcome,
): number {
  const { requested, replayed, failed = 0, left = 0 } = outcome;
  const { paint } = context;
  const done =
    replayed === undefined
      ? `${paint.green('replay requested:')} ${grouped(requested)}`
      : `${paint.green('replayed')} ${grouped(replayed)}`;
  const parts = [
    done,
    ...(failed > 0 ? [`${grouped(failed)} failed again`] : []),
    ...(left > 0 ? [`${grouped(left)} not retried yet`] : []),
  ];
  printResult(context, values, { json: outcome, text: parts.join(', ') });
  return failed > 0 || left > 0 ? exitCodes.failed : exitCodes.ok;
}

async function pendingIds(
  { deadLetters }: SubscriptionStorage,
  filter: DeadLetterFilter,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const page = await deadLetters.list(
      { ...filter, status: 'pending' },
      { limit: pageSize, ...defined({ after: ids.at(-1) }) },
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
