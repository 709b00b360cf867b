// `millrace stream tail`: what happens now, as it happens.

import type { EventStore, FeedItem } from '../store/event-store.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { eventText } from './event-text.ts';
import { filterOf, filterOptions } from './filter-options.ts';
import { wholeNumber } from './option-values.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { streamArgument } from './stream-argument.ts';
import { writeOut } from './write-out.ts';

const options = {
  ...storeOption,
  ...filterOptions,
  'from-start': { type: 'boolean', summary: 'also what happened before' },
  limit: { type: 'string', value: 'N', summary: 'ends after so many events' },
  ...jsonOption,
} as const;

export const streamTailCommand: Command = {
  name: 'stream tail',
  summary: 'follows one stream or all, until Ctrl-C, with --json as NDJSON',
  usage: 'stream tail [<stream>] [options]',
  options,
  examples: [
    'millrace stream tail',
    'millrace stream tail banking.currency.v1-core-USD --from-start',
    'millrace stream tail --category banking.currency.v1 --type-prefix currency.re --json',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name: 'stream tail', args: context.args }, options);
    const stream =
      positionals.length === 0 ? undefined : streamArgument('stream tail', positionals);
    const filter = filterOf(values);
    if (stream !== undefined && filter !== undefined) {
      throw usage('stream tail follows one stream or filters all of them, not both');
    }
    const limit = wholeNumber('limit', values.limit) ?? Number.POSITIVE_INFINITY;
    const json = values.json === true;
    await using store = await openExistingStore(context, values.store);
    let left = limit;
    for await (const item of feed(store, stream)) {
      // Told on a terminal only: a script waits for events.
      if (item.kind === 'caughtUp' && stderr.isTTY === true) {
        stderr.write(paint.dim('waiting for events; Ctrl-C ends\n'));
      }
      if (item.kind !== 'events') continue;
      const events = item.events.slice(0, left);
      left -= events.length;
      const withStream = stream === undefined;
      const lines = events.map((event) => eventText(event, { paint, json, withStream }));
      await writeOut(stdout, lines.join(''), signal);
      if (left === 0) break;
    }
    return exitCodes.ok;

    function feed(from: EventStore, name: string | undefined): AsyncIterable<FeedItem> {
      const start = values['from-start'] === true ? {} : ({ after: 'end' } as const);
      if (name !== undefined) return from.subscribeToStream(name, { ...start, signal });
      return from.subscribe({ ...start, signal, ...(filter === undefined ? {} : { filter }) });
    }
  },
};
