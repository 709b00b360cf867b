// `millrace import`: exported events into a store; run again, it goes on where it was.

import { resolve } from 'node:path';
import type { ImportProgress, ImportResult, OpenEventStoreOptions } from '../platform/index.ts';
import type { EventStore } from '../store/event-store.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { createProgress } from './progress.ts';
import { createEventRate, grouped, progressBar } from './progress-bar.ts';
import { jsonOption, openStore, storeOption, storeSections } from './store-option.ts';

const options = {
  ...storeOption,
  in: { type: 'string', value: 'file', summary: 'where from; .gz is decompressed, - is stdin (-)' },
  ...jsonOption,
} as const;

/** What the source took is taken: its names, and payloads above the usual limits. */
const importing: OpenEventStoreOptions = {
  names: 'open',
  payloadBytesMax: 64 * 1_048_576,
  payloadDepthMax: 1_000,
};

export const importCommand: Command = {
  name: 'import',
  summary: 'appends exported events, each once; run again, it goes on',
  usage: 'import [--in <file|->]',
  options,
  examples: [
    'millrace import --in events.ndjson',
    'millrace import --store postgres://localhost/shop < events.ndjson',
  ],
  sections: storeSections,
  async run(context) {
    const { stderr, signal } = context;
    const { values, positionals } = readArgs({ name: 'import', args: context.args }, options);
    if (positionals.length > 0) throw usage('import takes no argument: the file is --in');
    const { in: from = '-', json = false } = values;
    const progress = createProgress(stderr);
    const rate = createEventRate();
    let last: ImportProgress = { appended: 0, repeated: 0 };
    const onProgress = (now: ImportProgress & { readonly done?: number }): void => {
      last = now;
      const note = rate(now.appended + now.repeated);
      progress.show(now.done === undefined ? note : progressBar(now.done, note));
    };
    await using store = await openStore(context, values.store, importing);
    try {
      const result = await importFrom(store, context, { from, onProgress });
      progress.clear();
      report(context, { from, json, result });
      return exitCodes.ok;
    } catch (error) {
      if (!signal.aborted) throw error;
      progress.clear();
      const { appended } = last;
      stderr.write(`interrupted after ${grouped(appended)} new events: run it again to go on\n`);
      return exitCodes.interrupted;
    } finally {
      progress.clear();
    }
  },
};

async function importFrom(
  store: EventStore,
  { stdin, signal, cwd }: CommandContext,
  {
    from,
    onProgress,
  }: { readonly from: string; readonly onProgress: (progress: ImportProgress) => void },
): Promise<ImportResult> {
  const { importEvents, importFromFile } = await import('../platform/index.ts');
  return from === '-'
    ? importEvents(store, stdin(), { signal, onProgress })
    : importFromFile(store, resolve(cwd, from), { signal, onProgress });
}

function report(
  { stdout, stderr, paint }: CommandContext,
  {
    from,
    json,
    result,
  }: { readonly from: string; readonly json: boolean; readonly result: ImportResult },
): void {
  const { appended, repeated, complete, forgottenSubjects } = result;
  const before = repeated === 0 ? '' : `, ${grouped(repeated)} were there already`;
  stdout.write(
    json
      ? `${JSON.stringify({ in: from, ...result })}\n`
      : `${paint.green('imported')} ${grouped(appended)} events${before}\n`,
  );
  if (json) return;
  if (!complete) {
    stderr.write(
      `${paint.yellow('incomplete:')} the last line is no checkpoint, so the export was interrupted\n`,
    );
  }
  if (forgottenSubjects.length > 0) {
    stderr.write(
      `${paint.yellow('forgotten in the source:')} ${forgottenSubjects.join(', ')}: millrace forget <subject> --yes does so here\n`,
    );
  }
}
