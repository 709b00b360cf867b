// `millrace stream info`: how long a stream is, what retention it has, whether it was deleted.

import type { StreamInfo, StreamMetadata } from '../store/event-store.ts';
import { exitCodes, readArgs, type Command } from './command.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { noSuchStream, streamArgument } from './stream-argument.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const streamInfoCommand: Command = {
  name: 'stream info',
  summary: "shows a stream's revision, retention and state",
  usage: 'stream info <stream>',
  options,
  examples: ['millrace stream info banking.currency.v1-core-USD'],
  sections: storeSections,
  async run(context) {
    const { stdout } = context;
    const { values, positionals } = readArgs({ name: 'stream info', args: context.args }, options);
    const stream = streamArgument('stream info', positionals);
    const json = values.json === true;
    await using store = await openExistingStore(context, values.store);
    const info = await store.streamInfo(stream);
    if (info === undefined) return noSuchStream(context, { stream, json });
    stdout.write(json ? `${JSON.stringify(info)}\n` : infoText(info));
    return exitCodes.ok;
  },
};

const states = { no: 'live', soft: 'deleted, may come back', tombstone: 'ended for ever' } as const;

function infoText({ stream, revision, deleted, metadata }: StreamInfo): string {
  const rows = [
    ['stream', stream],
    ['revision', revision === -1 ? 'no events yet' : String(revision)],
    ['state', states[deleted]],
    ...metadataRows(metadata),
  ] as const;
  return rows.map(([name, value]) => `${name.padEnd(18)}${value}\n`).join('');
}

export function metadataRows(metadata: StreamMetadata): readonly (readonly [string, string])[] {
  const { maxCount, maxAgeSeconds, truncateBefore, custom } = metadata;
  const rows: (readonly [string, string | undefined])[] = [
    ['max-count', maxCount?.toString()],
    ['max-age', maxAgeSeconds === undefined ? undefined : `${maxAgeSeconds} s`],
    ['truncate-before', truncateBefore?.toString()],
    ['custom', custom === undefined ? undefined : JSON.stringify(custom)],
  ];
  return rows.filter((row): row is readonly [string, string] => row[1] !== undefined);
}
