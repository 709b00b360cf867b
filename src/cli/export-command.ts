// `millrace export`: the store's events as NDJSON, to a file that can be gone on with, or to a pipe.

import { resolve } from 'node:path';
import { parsePosition } from '../store/position.ts';
import type { ExportFileOptions, ExportOptions } from '../platform/index.ts';
import type { EventStore } from '../store/event-store.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { filterOf, filterOptions } from './filter-options.ts';
import { createProgress } from './progress.ts';
import { createEventRate, grouped, progressBar } from './progress-bar.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';
import { writeOut } from './write-out.ts';

const options = {
  ...storeOption,
  out: { type: 'string', value: 'file', summary: 'where to; .gz compresses, - is stdout (-)' },
  resume: { type: 'boolean', summary: 'goes on with a file: one that was interrupted, or is old' },
  force: { type: 'boolean', summary: 'overwrites a file that exists' },
  after: { type: 'string', value: 'position', summary: 'only what came after' },
  ...filterOptions,
  ...jsonOption,
} as const;

export const exportCommand: Command = {
  name: 'export',
  summary: 'writes the events as NDJSON, resumable, with metadata and tombstones',
  usage: 'export [--out <file|->] [--resume] [options]',
  options,
  examples: [
    'millrace export --out events.ndjson',
    'millrace export --out events.ndjson --resume',
    'millrace export --category banking.currency.v1 --out currencies.ndjson.gz',
    'millrace export | millrace import --store postgres://localhost/shop',
  ],
  sections: storeSections,
  async run(context) {
    const { stderr, signal } = context;
    const { values, positionals } = readArgs({ name: 'export', args: context.args }, options);
    if (positionals.length > 0) throw usage('export takes no argument: the file is --out');
    const { out = '-', resume = false, force = false, json = false } = values;
    if (resume && force) throw usage('export either resumes a file or overwrites it');
    if (out === '-' && (resume || force || json)) {
      throw usage('--resume, --force and --json need a file: --out <file>');
    }
    const filter = filterOf(values);
    const after = values.after === undefined ? undefined : parsePosition(values.after);
    const progress = createProgress(stderr);
    const rate = createEventRate();
    let events = 0;
    const exportOptions: ExportOptions = {
      signal,
      onProgress: (now) => {
        ({ events } = now);
        progress.show(progressBar(now.done, rate(events)));
      },
      ...(filter === undefined ? {} : { filter }),
      ...(after === undefined ? {} : { after }),
    };
    await using store = await openExistingStore(context, values.store);
    try {
      if (out === '-') await toStdout(store, context, exportOptions);
      else {
        const existing = resume ? 'resume' : force ? 'overwrite' : 'refuse';
        await toFile(store, context, { out, json, options: { ...exportOptions, existing } });
      }
      return exitCodes.ok;
    } catch (error) {
      if (!signal.aborted) throw error;
      progress.clear();
      const next = out === '-' || out.endsWith('.gz') ? '' : ': go on with --resume';
      stderr.write(`interrupted after ${grouped(events)} events${next}\n`);
      return exitCodes.interrupted;
    } finally {
      progress.clear();
    }
  },
};

async function toStdout(
  store: EventStore,
  { stdout, signal }: CommandContext,
  exportOptions: ExportOptions,
): Promise<void> {
  const { exportEvents } = await import('../platform/transfer/export-events.ts');
  for await (const piece of exportEvents(store, exportOptions)) {
    await writeOut(stdout, piece, signal);
  }
}

async function toFile(
  store: EventStore,
  { stdout, cwd, paint }: CommandContext,
  {
    out,
    json,
    options: fileOptions,
  }: { readonly out: string; readonly json: boolean; readonly options: ExportFileOptions },
): Promise<void> {
  const { exportToFile } = await import('../platform/transfer/export-file.ts');
  const result = await exportToFile(store, resolve(cwd, out), fileOptions);
  const more = result.resumedAfter === undefined ? '' : ' more';
  stdout.write(
    json
      ? `${JSON.stringify({ out, ...result })}\n`
      : `${paint.green('exported')} ${grouped(result.events)}${more} events to ${out}, up to position ${result.position}\n`,
  );
}
