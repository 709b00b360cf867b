// `millrace stream tombstone`: ends a stream for ever.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { expectedRevision } from './option-values.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { noSuchStream, streamArgument } from './stream-argument.ts';

const options = {
  ...storeOption,
  expected: { type: 'string', value: 'revision', summary: 'only while this is its last event' },
  yes: { type: 'boolean', summary: 'says that it is meant' },
  ...jsonOption,
} as const;

export const streamTombstoneCommand: Command = {
  name: 'stream tombstone',
  summary: 'ends a stream for ever: it can be neither read nor written again',
  usage: 'stream tombstone <stream> --yes [--expected <revision>]',
  options,
  examples: ['millrace stream tombstone banking.currency.v1-core-USD --yes'],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs(
      { name: 'stream tombstone', args: context.args },
      options,
    );
    const stream = streamArgument('stream tombstone', positionals);
    const expected = expectedRevision(values.expected);
    if (values.yes !== true) {
      throw usage(`a tombstone ends '${stream}' for ever: pass --yes if that is meant`);
    }
    const json = values.json === true;
    await using store = await openExistingStore(context, values.store);
    if ((await store.streamInfo(stream)) === undefined) {
      return noSuchStream(context, { stream, json });
    }
    await store.tombstoneStream(stream, expected === undefined ? {} : { expected });
    stdout.write(
      json
        ? `${JSON.stringify({ stream, deleted: 'tombstone' })}\n`
        : `${paint.green('ended')} ${stream} for ever\n`,
    );
    return exitCodes.ok;
  },
};
