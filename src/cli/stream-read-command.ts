// `millrace stream read`: what happened in a stream.

import { exitCodes, readArgs, type Command } from './command.ts';
import { eventText } from './event-text.ts';
import { wholeNumber } from './option-values.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { streamArgument } from './stream-argument.ts';
import { writeOut } from './write-out.ts';

const options = {
  ...storeOption,
  from: { type: 'string', value: 'revision', summary: 'begins here (the first, or the last)' },
  backwards: { type: 'boolean', summary: 'the latest first' },
  limit: { type: 'string', value: 'N', summary: 'at most so many events' },
  ...jsonOption,
} as const;

export const streamReadCommand: Command = {
  name: 'stream read',
  summary: "shows a stream's events, with --json as NDJSON",
  usage: 'stream read <stream> [--from <revision>] [--backwards] [--limit <N>]',
  options,
  examples: [
    'millrace stream read banking.currency.v1-core-USD',
    'millrace stream read banking.currency.v1-core-USD --backwards --limit 1 --json',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name: 'stream read', args: context.args }, options);
    const stream = streamArgument('stream read', positionals);
    const from = wholeNumber('from', values.from);
    const limit = wholeNumber('limit', values.limit);
    const json = values.json === true;
    await using store = await openExistingStore(context, values.store);
    const reader = store.readStream(stream, {
      direction: values.backwards === true ? 'backwards' : 'forwards',
      signal,
      ...(from === undefined ? {} : { from }),
      ...(limit === undefined ? {} : { limit }),
    });
    let events = 0;
    for await (const page of reader.pages()) {
      events += page.length;
      const lines = page.map((event) => eventText(event, { paint, json, withStream: false }));
      await writeOut(stdout, lines.join(''), signal);
    }
    if (events === 0 && !json) stderr.write(`no events to show in '${stream}'\n`);
    return exitCodes.ok;
  },
};
