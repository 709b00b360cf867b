// `millrace stream metadata`: how long a stream's events are kept.

import { MillraceError } from '../foundation/error.ts';
import type { StreamInfo, StreamMetadata } from '../store/event-store.ts';
import { exitCodes, readArgs, type Command } from './command.ts';
import { durationSeconds, wholeNumber } from './option-values.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { noSuchStream, streamArgument } from './stream-argument.ts';
import { metadataRows } from './stream-info-command.ts';

const options = {
  ...storeOption,
  'max-count': { type: 'string', value: 'N', summary: 'shows the last N events only; or none' },
  'max-age': {
    type: 'string',
    value: 'duration',
    summary: 'shows events younger than 90s, 12h, 30d; or none',
  },
  'truncate-before': { type: 'string', value: 'revision', summary: 'hides what is below; or none' },
  ...jsonOption,
} as const;

export const streamMetadataCommand: Command = {
  name: 'stream metadata',
  summary: "shows a stream's retention, or changes it",
  usage:
    'stream metadata <stream> [--max-count <N>] [--max-age <duration>] [--truncate-before <revision>]',
  options,
  examples: [
    'millrace stream metadata banking.currency.v1-core-USD',
    'millrace stream metadata banking.currency.v1-core-USD --max-count 100 --max-age none',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout } = context;
    const { values, positionals } = readArgs(
      { name: 'stream metadata', args: context.args },
      options,
    );
    const stream = streamArgument('stream metadata', positionals);
    const json = values.json === true;
    const changes: Changes = {
      maxCount: change(values['max-count'], (text) => wholeNumber('max-count', text)),
      maxAgeSeconds: change(values['max-age'], (text) => durationSeconds('max-age', text)),
      truncateBefore: change(values['truncate-before'], (text) =>
        wholeNumber('truncate-before', text),
      ),
    };
    await using store = await openExistingStore(context, values.store);
    const info = await store.streamInfo(stream);
    const isChanged = Object.values(changes).some((each) => each !== undefined);
    if (info === undefined && !isChanged) return noSuchStream(context, { stream, json });
    const metadata = merge(info?.metadata ?? {}, changes);
    if (isChanged) {
      if (info !== undefined) assertLive(info);
      await store.setStreamMetadata(stream, metadata);
    }
    const rows = metadataRows(metadata).map(([name, value]) => `${name.padEnd(18)}${value}\n`);
    stdout.write(
      json
        ? `${JSON.stringify({ stream, metadata })}\n`
        : rows.join('') || 'everything is kept and shown\n',
    );
    return exitCodes.ok;
  },
};

/** Undefined leaves it as it is, `none` takes it away. */
type Change = number | 'none' | undefined;
type Retained = 'maxCount' | 'maxAgeSeconds' | 'truncateBefore';
type Changes = Readonly<Record<Retained, Change>>;

function change(text: string | undefined, read: (text: string) => number): Change {
  return text === undefined || text === 'none' ? text : read(text);
}

function merge(metadata: StreamMetadata, changes: Changes): StreamMetadata {
  const merged: { -readonly [Key in keyof StreamMetadata]: StreamMetadata[Key] } = { ...metadata };
  for (const [name, value] of Object.entries(changes) as [Retained, Change][]) {
    if (value === 'none') delete merged[name];
    else if (value !== undefined) merged[name] = value;
  }
  return merged;
}

/** New metadata takes the place of all that was set, the deletion too: that must not slip in. */
function assertLive({ stream, deleted }: StreamInfo): void {
  if (deleted === 'no') return;
  throw new MillraceError('STREAM_DELETED', `stream '${stream}' was deleted: it keeps nothing`, {
    details: { stream },
  });
}
