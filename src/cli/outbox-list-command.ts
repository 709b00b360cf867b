// `millrace outbox list`: what is to leave, and what became of it, page by page.

import type { OutboxMessage, OutboxStatus } from '../outbox/outbox-message.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { openOutbox, outboxFilterOf, outboxFilterOptions, statusText } from './open-outbox.ts';
import { wholeNumber } from './option-values.ts';
import type { Paint } from './paint.ts';
import { jsonOption, storeOption, outboxSections } from './store-option.ts';
import { writeOut } from './write-out.ts';

const statuses = ['pending', 'claimed', 'failed', 'dead', 'sent'] as const;
const limitDefault = 50;
const name = 'outbox list';

const options = {
  ...storeOption,
  ...outboxFilterOptions,
  status: { type: 'string', value: 'status', summary: `${statuses.join(', ')} (all)` },
  limit: { type: 'string', value: 'N', summary: `at most so many (${limitDefault})` },
  after: { type: 'string', value: 'id', summary: 'the page behind this one' },
  ...jsonOption,
} as const;

export const outboxListCommand: Command = {
  name,
  summary: 'shows messages of the outbox, oldest first, with --json as NDJSON',
  usage: `${name} [options]`,
  options,
  examples: [
    'millrace outbox list --status dead',
    'millrace outbox list --to kafka:payments --since 12h --json',
  ],
  sections: outboxSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length > 0) throw usage(`${name} takes no argument: outbox show takes an id`);
    const limit = wholeNumber('limit', values.limit) ?? limitDefault;
    const filter = { ...outboxFilterOf(values, Date.now()), status: statusOf(values.status) };
    await using ledger = await openOutbox(context, values.store);
    const messages = await ledger.list(filter, { limit, after: values.after });
    const isJson = values.json === true;
    const text = messages.map((message) =>
      isJson ? `${JSON.stringify(message)}\n` : messageLine(message, paint),
    );
    await writeOut(stdout, text.join(''), signal);
    if (isJson) return exitCodes.ok;
    if (messages.length === 0) stderr.write('no messages\n');
    if (messages.length === limit) stderr.write(`for more: --after ${messages.at(-1)?.id ?? ''}\n`);
    return exitCodes.ok;
  },
};

function messageLine(message: OutboxMessage, paint: Paint): string {
  const { id, createdAt, eventType, integrationType, attempts, maxAttempts, lastError } = message;
  const error = lastError === undefined ? '' : `: ${lastError.split('\n')[0] ?? ''}`;
  return `${paint.bold(id)}  ${createdAt.toISOString()}  ${statusText(message, paint)}  ${paint.cyan(eventType)}
  ${integrationType}, ${attempts} of ${maxAttempts} attempts failed${error}
`;
}

function statusOf(text: string | undefined): OutboxStatus | undefined {
  if (text === undefined) return undefined;
  const status = statuses.find((each) => each === text);
  if (status === undefined) throw usage(`--status takes ${statuses.join(', ')}, not '${text}'`);
  return status.toUpperCase() as OutboxStatus;
}
