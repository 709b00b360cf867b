// `millrace dlq list`: what handlers could not take.

import type { DeadLetterStatus } from '../subscriptions/dead-letter.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { letterLine } from './dead-letter-text.ts';
import { letterFilterOf, letterFilterOptions } from './letter-filter-options.ts';
import { openSubscriptions } from './open-subscriptions.ts';
import { wholeNumber } from './option-values.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';
import { writeOut } from './write-out.ts';

const limitDefault = 50;
const statuses = ['pending', 'replayed', 'discarded', 'all'] as const;

const options = {
  ...storeOption,
  ...letterFilterOptions,
  status: { type: 'string', value: 'status', summary: `${statuses.join(', ')} (pending)` },
  limit: { type: 'string', value: 'N', summary: `at most so many (${limitDefault})` },
  after: { type: 'string', value: 'id', summary: 'the page behind this one' },
  ...jsonOption,
} as const;

export const dlqListCommand: Command = {
  name: 'dlq list',
  summary: 'shows dead letters, oldest first, with --json as NDJSON',
  usage: 'dlq list [options]',
  options,
  examples: [
    'millrace dlq list',
    'millrace dlq list --subscription sub:notify:greetings:v1 --since 12h',
    'millrace dlq list --status all --limit 100 --after <id of the last one> --json',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name: 'dlq list', args: context.args }, options);
    if (positionals.length > 0) throw usage('dlq list takes no argument: dlq show takes an id');
    const filter = letterFilterOf(values, Date.now());
    const status = statusOf(values.status);
    const limit = wholeNumber('limit', values.limit) ?? limitDefault;
    if (limit < 1) throw usage('--limit takes a whole number from 1 on');
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, storage } = subscriptions;
    // An id that nobody knows would quietly begin at the first page again.
    if (values.after !== undefined) await admin.letter(values.after);
    const letters = await storage.deadLetters.list(
      { ...filter, ...(status === undefined ? {} : { status }) },
      { limit, ...(values.after === undefined ? {} : { after: values.after }) },
    );
    const isJson = values.json === true;
    const text = letters.map((letter) =>
      isJson ? `${JSON.stringify(letter)}\n` : letterLine(letter, paint),
    );
    await writeOut(stdout, text.join(''), signal);
    if (isJson) return exitCodes.ok;
    if (letters.length === 0) stderr.write('no dead letters\n');
    if (letters.length === limit) stderr.write(`for more: --after ${letters.at(-1)?.id ?? ''}\n`);
    return exitCodes.ok;
  },
};

function statusOf(text: string = 'pending'): DeadLetterStatus | undefined {
  const status = statuses.find((each) => each === text);
  if (status === undefined) throw usage(`--status takes ${statuses.join(', ')}, not '${text}'`);
  return status === 'all' ? undefined : status;
}
