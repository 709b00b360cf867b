// `millrace export`, `import`, `scavenge`, `forget` and `migrate`: the whole event store, in and out.

import { resolve } from 'node:path';
import type {
  ExportFileOptions,
  ExportOptions,
  ImportProgress,
  ImportResult,
  EngineOptions,
} from '../../platform/index.ts';
import type { EventStore } from '../../store/event-store.ts';
import { parsePosition } from '../../store/position.ts';
import type { ScavengeProgress } from '../../store/store-engine.ts';
import {
  defineCommand,
  exitCodes,
  usage,
  type CommandContext,
  type CommandResult,
} from '../command.ts';
import {
  checkConfirmed,
  defined,
  eventFilterOf,
  eventFilterOptions,
  flag,
  option,
} from '../options.ts';
import {
  displayUrl,
  openExistingStore,
  openStore,
  outboxOption,
  outboxUrl,
  storeOption,
  storeUrl,
} from '../stores.ts';
import { createEventRate, createProgress, progressBar } from '../terminal/progress.ts';
import { grouped } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';

export const exportCommand = defineCommand({
  name: 'export',
  summary: 'writes events, stream metadata and tombstones as NDJSON; resumable',
  usage: '[--out <file|->] [--resume] [options]',
  options: {
    ...storeOption,
    out: option('file', 'output file; .gz compresses, - is stdout (default: -)'),
    resume: flag('continues an interrupted or older export file'),
    force: flag('overwrites an existing file'),
    after: option('position', 'only events after this position'),
    ...eventFilterOptions,
  },
  examples: [
    'millrace export --out events.ndjson',
    'millrace export --out events.ndjson --resume',
    'millrace export --category banking.currency.v1 --out currencies.ndjson.gz',
    'millrace export | millrace import --store postgres://localhost/shop',
  ],
  async run(context) {
    const { values, stderr, signal } = context;
    const { out = '-', resume = false, force = false, json = false } = values;
    if (resume && force) throw usage('--resume and --force cannot be combined: choose one');
    if (out === '-' && (resume || force || json)) {
      throw usage('--resume, --force and --json need a file: --out <file>');
    }
    const filter = eventFilterOf(values);
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
      ...defined({ filter, after }),
    };
    await using store = await openExistingStore(context, values.store);
    try {
      if (out === '-') {
        await exportToStdout(store, context, exportOptions);
        return exitCodes.ok;
      }
      const existing = resume ? 'resume' : force ? 'overwrite' : 'fail';
      return await exportToFile(store, context, out, { ...exportOptions, existing });
    } catch (error) {
      if (!signal.aborted) throw error;
      progress.clear();
      const next = out === '-' || out.endsWith('.gz') ? '' : ': continue with --resume';
      stderr.write(`interrupted after ${grouped(events)} events${next}\n`);
      return exitCodes.interrupted;
    } finally {
      progress.clear();
    }
  },
});

async function exportToStdout(
  store: EventStore,
  { stdout, signal }: CommandContext,
  options: ExportOptions,
): Promise<void> {
  const { exportEvents } = await import('../../platform/transfer/export-events.ts');
  for await (const piece of exportEvents(store, options)) await writeOut(stdout, piece, signal);
}

async function exportToFile(
  store: EventStore,
  { cwd, paint }: CommandContext,
  out: string,
  options: ExportFileOptions,
): Promise<CommandResult> {
  const { exportToFile: write } = await import('../../platform/transfer/export-file.ts');
  const result = await write(store, resolve(cwd, out), options);
  const more = result.resumedAfter === undefined ? '' : ' more';
  const done = `${paint.green('exported')} ${grouped(result.events)}${more} events`;
  return {
    json: { out, ...result },
    text: `${done} to ${out}, up to position ${result.position}`,
  };
}

/** Accepts all names and payloads that the source accepted, above the usual limits. */
const importLimits: EngineOptions = {
  names: 'open',
  payloadBytesMax: 64 * 1_048_576,
  payloadDepthMax: 1_000,
};

export const importCommand = defineCommand({
  name: 'import',
  summary: 'appends exported events, each once; run it again to resume',
  usage: '[--in <file|->]',
  options: {
    ...storeOption,
    in: option('file', 'input file; .gz is decompressed, - is stdin (default: -)'),
  },
  examples: [
    'millrace import --in events.ndjson',
    'millrace import --store postgres://localhost/shop < events.ndjson',
  ],
  async run(context) {
    const { values, stdin, stderr, signal, cwd } = context;
    const { in: from = '-' } = values;
    const progress = createProgress(stderr);
    const rate = createEventRate();
    let last: ImportProgress = { appended: 0, duplicates: 0 };
    const onProgress = (now: ImportProgress & { readonly done?: number }): void => {
      last = now;
      const note = rate(now.appended + now.duplicates);
      progress.show(now.done === undefined ? note : progressBar(now.done, note));
    };
    const { importEvents, importFromFile } = await import('../../platform/index.ts');
    await using store = await openStore(context, values.store, importLimits);
    try {
      const result =
        from === '-'
          ? await importEvents(store, stdin(), { signal, onProgress })
          : await importFromFile(store, resolve(cwd, from), { signal, onProgress });
      progress.clear();
      if (values.json !== true) warnAboutImport(context, result);
      return { json: { in: from, ...result }, text: importText(result, context) };
    } catch (error) {
      if (!signal.aborted) throw error;
      progress.clear();
      const { appended } = last;
      stderr.write(`interrupted after ${grouped(appended)} new events: run again to continue\n`);
      return exitCodes.interrupted;
    } finally {
      progress.clear();
    }
  },
});

function importText({ appended, duplicates }: ImportResult, { paint }: CommandContext): string {
  const skipped = duplicates === 0 ? '' : `, ${grouped(duplicates)} duplicates`;
  return `${paint.green('imported')} ${grouped(appended)} events${skipped}`;
}

function warnAboutImport(
  { stderr, paint }: CommandContext,
  { complete, forgottenSubjects }: ImportResult,
): void {
  if (!complete) {
    stderr.write(
      `${paint.yellow('incomplete:')} the file does not end with a checkpoint, so the export was interrupted\n`,
    );
  }
  if (forgottenSubjects.length > 0) {
    stderr.write(
      `${paint.yellow('forgotten in the source:')} ${forgottenSubjects.join(', ')}: run millrace forget <subject> --yes here, too\n`,
    );
  }
}

export const scavengeCommand = defineCommand({
  name: 'scavenge',
  summary: 'permanently removes events that retention or deletion hides',
  options: storeOption,
  examples: ['millrace scavenge', 'millrace scavenge --store postgres://localhost/shop --json'],
  async run(context) {
    const { stderr, signal, paint } = context;
    await using store = await openExistingStore(context, context.values.store);
    const progress = createProgress(stderr);
    const onProgress = ({ streamsDone, streamsTotal, eventsRemoved }: ScavengeProgress): void =>
      progress.show(
        progressBar(
          streamsTotal === 0 ? 1 : streamsDone / streamsTotal,
          `${grouped(streamsDone)} of ${grouped(streamsTotal)} streams, ${grouped(eventsRemoved)} events removed`,
        ),
      );
    const result = await store.scavenge({ signal, onProgress }).finally(() => progress.clear());
    return {
      json: result,
      text: `${paint.green('removed')} ${grouped(result.eventsRemoved)} events from ${grouped(result.streamsTotal)} streams with retention`,
    };
  },
});

export const forgetCommand = defineCommand({
  name: 'forget',
  summary: "destroys a person's key: payloads encrypted with it become unreadable",
  usage: '<subject> --yes',
  options: {
    ...storeOption,
    yes: flag('confirms the permanent loss of the data'),
  },
  examples: ['millrace forget customer-4711 --yes'],
  argument: 'subject: the dataSubject header of the events',
  async run(context) {
    const { values, argument: subject, paint } = context;
    checkConfirmed(values, `the data of '${subject}' cannot be restored`);
    await using store = await openExistingStore(context, values.store);
    const { forgotten } = await store.forget(subject);
    return {
      json: { subject, forgotten },
      text: forgotten
        ? `${paint.green('forgot')} ${subject}`
        : `no data of ${subject} found; new data of ${subject} is rejected from now on`,
    };
  },
});

export const migrateCommand = defineCommand({
  name: 'migrate',
  summary: "brings the store's schema up to date, or prints the SQL",
  usage: '[--outbox] [--store <url>] [--print [--all]]',
  options: {
    ...outboxOption,
    outbox: flag('migrates the schema of the outbox instead (core_outbox in PostgreSQL)'),
    print: flag('prints the SQL of pending migrations, and applies none'),
    all: flag('with --print: all migrations, without a connection'),
  },
  examples: [
    'millrace migrate',
    'millrace migrate --store postgres://localhost/shop --print',
    'millrace migrate --store postgres://localhost/shop --print --all > schema.sql',
    'millrace migrate --outbox --store postgres://localhost/shop --print --all > outbox.sql',
  ],
  async run(context) {
    const { values, paint } = context;
    if (values.all === true && values.print !== true) throw usage('--all requires --print');
    const isOutbox = values.outbox === true;
    const url = (isOutbox ? outboxUrl : storeUrl)(context, values.store);
    const store = await displayUrl(context, url);
    const schemas = await import('../../platform/engines/engine-schemas.ts');
    const schema = await (isOutbox ? schemas.outboxSchema : schemas.eventStoreSchema)(url);
    if (values.print === true) {
      const steps = values.all === true ? schema.steps : await schema.pending();
      const text = steps.length === 0 ? '-- nothing to do' : schema.script(steps);
      return { document: { store, steps }, text };
    }
    const applied = (await schema.migrate()).map(({ number, title }) => ({ number, title }));
    const lines = applied.map(
      ({ number, title }) => `${paint.green('applied migration')} ${number}: ${title}\n`,
    );
    const note = applied.length === 0 ? ': nothing to do' : '';
    return {
      document: { store, applied },
      text: `${lines.join('')}${store} is up to date${note}`,
    };
  },
});
