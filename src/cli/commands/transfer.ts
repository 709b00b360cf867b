// `millrace export`, `import`, `scavenge`, `forget` and `migrate`: the whole event store, in and out.

import { resolve } from 'node:path';
import type {
  ExportFileOptions,
  ExportOptions,
  ImportProgress,
  ImportResult,
  OpenEventStoreOptions,
} from '../../platform/index.ts';
import type { EventStore } from '../../store/event-store.ts';
import { parsePosition } from '../../store/position.ts';
import type { ScavengeProgress } from '../../store/store-engine.ts';
import {
  defineCommand,
  exitCodes,
  noArguments,
  oneArgument,
  printResult,
  usage,
  type CommandContext,
} from '../command.ts';
import { defined, eventFilterOf, eventFilterOptions, jsonOption } from '../options.ts';
import {
  displayUrl,
  openExistingStore,
  openStore,
  outboxSections,
  outboxUrl,
  storeOption,
  storeSections,
  storeUrl,
} from '../stores.ts';
import { createEventRate, createProgress, progressBar } from '../terminal/progress.ts';
import { grouped } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';

export const exportCommand = defineCommand({
  name: 'export',
  summary: 'writes events, stream metadata and tombstones as NDJSON; resumable',
  usage: 'export [--out <file|->] [--resume] [options]',
  options: {
    ...storeOption,
    out: {
      type: 'string',
      value: 'file',
      summary: 'output file; .gz compresses, - is stdout (default: -)',
    },
    resume: { type: 'boolean', summary: 'continues an interrupted or older export file' },
    force: { type: 'boolean', summary: 'overwrites an existing file' },
    after: { type: 'string', value: 'position', summary: 'only events after this position' },
    ...eventFilterOptions,
    ...jsonOption,
  },
  examples: [
    'millrace export --out events.ndjson',
    'millrace export --out events.ndjson --resume',
    'millrace export --category banking.currency.v1 --out currencies.ndjson.gz',
    'millrace export | millrace import --store postgres://localhost/shop',
  ],
  sections: storeSections,
  async run(context, input) {
    const { stderr, signal } = context;
    const { values } = input;
    noArguments(input);
    const { out = '-', resume = false, force = false, json = false } = values;
    if (resume && force) throw usage('--resume and --force exclude each other');
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
      if (out === '-') await exportToStdout(store, context, exportOptions);
      else {
        const existing = resume ? 'resume' : force ? 'overwrite' : 'refuse';
        await exportToFile(store, context, { out, json, options: { ...exportOptions, existing } });
      }
      return exitCodes.ok;
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
  context: CommandContext,
  target: { readonly out: string; readonly json: boolean; readonly options: ExportFileOptions },
): Promise<void> {
  const { out, json, options } = target;
  const { exportToFile: write } = await import('../../platform/transfer/export-file.ts');
  const result = await write(store, resolve(context.cwd, out), options);
  const more = result.resumedAfter === undefined ? '' : ' more';
  const done = `${context.paint.green('exported')} ${grouped(result.events)}${more} events`;
  printResult(
    context,
    { json },
    { json: { out, ...result }, text: `${done} to ${out}, up to position ${result.position}` },
  );
}

/** Accepts all names and payloads that the source accepted, above the usual limits. */
const importLimits: OpenEventStoreOptions = {
  names: 'open',
  payloadBytesMax: 64 * 1_048_576,
  payloadDepthMax: 1_000,
};

export const importCommand = defineCommand({
  name: 'import',
  summary: 'appends exported events, each once; run it again to resume',
  usage: 'import [--in <file|->]',
  options: {
    ...storeOption,
    in: {
      type: 'string',
      value: 'file',
      summary: 'input file; .gz is decompressed, - is stdin (default: -)',
    },
    ...jsonOption,
  },
  examples: [
    'millrace import --in events.ndjson',
    'millrace import --store postgres://localhost/shop < events.ndjson',
  ],
  sections: storeSections,
  async run(context, input) {
    const { stdin, stderr, signal, cwd } = context;
    const { values } = input;
    noArguments(input);
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
      return printImport(context, values, { in: from, ...result });
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

function printImport(
  context: CommandContext,
  values: { readonly json?: boolean | undefined },
  result: ImportResult & { readonly in: string },
): number {
  const { stderr, paint } = context;
  const { appended, duplicates, complete, forgottenSubjects } = result;
  const skipped = duplicates === 0 ? '' : `, ${grouped(duplicates)} duplicates`;
  printResult(context, values, {
    json: result,
    text: `${paint.green('imported')} ${grouped(appended)} events${skipped}`,
  });
  if (values.json === true) return exitCodes.ok;
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
  return exitCodes.ok;
}

export const scavengeCommand = defineCommand({
  name: 'scavenge',
  summary: 'permanently removes events that retention or deletion hides',
  usage: 'scavenge',
  options: { ...storeOption, ...jsonOption },
  examples: ['millrace scavenge', 'millrace scavenge --store postgres://localhost/shop --json'],
  sections: storeSections,
  async run(context, input) {
    const { stderr, signal, paint } = context;
    const { values } = input;
    noArguments(input);
    await using store = await openExistingStore(context, values.store);
    const progress = createProgress(stderr);
    const onProgress = ({ streamsDone, streamsTotal, eventsRemoved }: ScavengeProgress): void =>
      progress.show(
        progressBar(
          streamsTotal === 0 ? 1 : streamsDone / streamsTotal,
          `${grouped(streamsDone)} of ${grouped(streamsTotal)} streams, ${grouped(eventsRemoved)} events removed`,
        ),
      );
    const result = await store.scavenge({ signal, onProgress }).finally(() => progress.clear());
    return printResult(context, values, {
      json: result,
      text: `${paint.green('removed')} ${grouped(result.eventsRemoved)} events from ${grouped(result.streamsTotal)} streams with retention`,
    });
  },
});

export const forgetCommand = defineCommand({
  name: 'forget',
  summary: "destroys a person's key: payloads encrypted with it become unreadable",
  usage: 'forget <subject> --yes',
  options: {
    ...storeOption,
    yes: { type: 'boolean', summary: 'confirms the permanent loss of the data' },
    ...jsonOption,
  },
  examples: ['millrace forget customer-4711 --yes'],
  sections: storeSections,
  async run(context, input) {
    const { values } = input;
    const subject = oneArgument(input, 'subject: the dataSubject header of the events');
    if (values.yes !== true) {
      throw usage(`the data of '${subject}' cannot be restored: pass --yes to confirm`);
    }
    await using store = await openExistingStore(context, values.store);
    const { forgotten } = await store.forget(subject);
    return printResult(context, values, {
      json: { subject, forgotten },
      text: forgotten
        ? `${context.paint.green('forgot')} ${subject}`
        : `there is no data of ${subject}; new data is refused from now on`,
    });
  },
});

export const migrateCommand = defineCommand({
  name: 'migrate',
  summary: "brings the store's schema up to date, or prints the SQL",
  usage: 'migrate [--outbox] [--store <url>] [--print [--all]]',
  options: {
    ...storeOption,
    outbox: {
      type: 'boolean',
      summary: 'migrates the schema of the outbox instead (core_outbox in PostgreSQL)',
    },
    print: { type: 'boolean', summary: 'prints the SQL of pending migrations, and applies none' },
    all: { type: 'boolean', summary: 'with --print: all migrations, without a connection' },
    ...jsonOption,
  },
  examples: [
    'millrace migrate',
    'millrace migrate --store postgres://localhost/shop --print',
    'millrace migrate --store postgres://localhost/shop --print --all > schema.sql',
    'millrace migrate --outbox --store postgres://localhost/shop --print --all > outbox.sql',
  ],
  sections: outboxSections,
  async run(context, input) {
    const { stdout, paint } = context;
    const { values } = input;
    noArguments(input);
    if (values.all === true && values.print !== true) throw usage('--all requires --print');
    const isOutbox = values.outbox === true;
    const url = (isOutbox ? outboxUrl : storeUrl)(context, values.store);
    const store = await displayUrl(context, url);
    const schema = isOutbox
      ? await (await import('../../platform/engines/engine-schemas.ts')).outboxSchema(url)
      : await (await import('../../platform/engines/engine-schemas.ts')).eventStoreSchema(url);
    if (values.print === true) {
      const steps = values.all === true ? schema.steps : await schema.pending();
      if (values.json === true) stdout.write(`${JSON.stringify({ store, steps }, null, 2)}\n`);
      else stdout.write(steps.length === 0 ? `-- nothing to do\n` : schema.script(steps));
      return exitCodes.ok;
    }
    const applied = (await schema.migrate()).map(({ number, title }) => ({ number, title }));
    if (values.json === true) {
      stdout.write(`${JSON.stringify({ store, applied }, null, 2)}\n`);
      return exitCodes.ok;
    }
    for (const { number, title } of applied) {
      stdout.write(`${paint.green('applied migration')} ${number}: ${title}\n`);
    }
    stdout.write(
      applied.length === 0 ? `${store} is up to date: nothing to do\n` : `${store} is up to date\n`,
    );
    return exitCodes.ok;
  },
});
