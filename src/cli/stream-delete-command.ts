// `millrace stream delete`: hides a stream's events; the next append brings the stream back.

import { MillraceError } from '../foundation/error.ts';
import { exitCodes, readArgs, type Command } from './command.ts';
import { expectedRevision } from './option-values.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { noSuchStream, streamArgument } from './stream-argument.ts';

const options = {
  ...storeOption,
  expected: { type: 'string', value: 'revision', summary: 'only while this is its last event' },
  ...jsonOption,
} as const;

export const streamDeleteCommand: Command = {
  name: 'stream delete',
  summary: "hides all of a stream's events; a new append brings it back",
  usage: 'stream delete <stream> [--expected <revision>]',
  options,
  examples: ['millrace stream delete banking.currency.v1-core-USD --expected 12'],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs(
      { name: 'stream delete', args: context.args },
      options,
    );
    const stream = streamArgument('stream delete', positionals);
    const expected = expectedRevision(values.expected);
    const json = values.json === true;
    await using store = await openExistingStore(context, values.store);
    const info = await store.streamInfo(stream);
    if (info === undefined) return noSuchStream(context, { stream, json });
    if (info.deleted === 'tombstone') {
      throw new MillraceError('STREAM_DELETED', `stream '${stream}' has a tombstone already`, {
        details: { stream },
      });
    }
    await store.deleteStream(stream, expected === undefined ? {} : { expected });
    stdout.write(
      json
        ? `${JSON.stringify({ stream, deleted: 'soft' })}\n`
        : `${paint.green('deleted')} ${stream}; the next append goes on counting\n`,
    );
    return exitCodes.ok;
  },
};
