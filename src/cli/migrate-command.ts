// `millrace migrate`: brings a store's schema up to date, or shows how, for those who do it by hand.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import {
  jsonOption,
  outboxSections,
  outboxUrl,
  shownStore,
  storeOption,
  storeUrl,
} from './store-option.ts';

const options = {
  ...storeOption,
  outbox: { type: 'boolean', summary: "the outbox's schema instead (core_outbox in PostgreSQL)" },
  print: { type: 'boolean', summary: 'prints the SQL of the steps that are left, takes none' },
  all: { type: 'boolean', summary: 'with --print: all steps, without asking the database' },
  ...jsonOption,
} as const;

export const migrateCommand: Command = {
  name: 'migrate',
  summary: "brings the store's schema up to date, or prints the SQL that does",
  usage: 'migrate [--outbox] [--store <url>] [--print [--all]]',
  options,
  examples: [
    'millrace migrate',
    'millrace migrate --store postgres://localhost/shop --print',
    'millrace migrate --store postgres://localhost/shop --print --all > schema.sql',
    'millrace migrate --outbox --store postgres://localhost/shop --print --all > outbox.sql',
  ],
  sections: outboxSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'migrate', args: context.args }, options);
    if (positionals.length > 0) throw usage('migrate takes no argument: the store is an option');
    if (values.all === true && values.print !== true) throw usage('--all goes with --print');
    const ofOutbox = values.outbox === true;
    const url = (ofOutbox ? outboxUrl : storeUrl)(context, values.store);
    const store = await shownStore(context, url);
    const schema = ofOutbox
      ? await (await import('../platform/engines/engine-schemas.ts')).outboxSchema(url)
      : await (await import('../platform/engines/engine-schemas.ts')).eventStoreSchema(url);

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
      stdout.write(`${paint.green('took step')} ${number}: ${title}\n`);
    }
    stdout.write(
      applied.length === 0 ? `${store} is up to date: nothing to do\n` : `${store} is up to date\n`,
    );
    return exitCodes.ok;
  },
};
