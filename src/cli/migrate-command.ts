// `millrace migrate`: brings a store's schema up to date, or shows how, for those who do it by hand.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { jsonOption, shownStore, storeOption, storeSections, storeUrl } from './store-option.ts';

const options = {
  ...storeOption,
  print: { type: 'boolean', summary: 'prints the SQL of the steps that are left, takes none' },
  all: { type: 'boolean', summary: 'with --print: all steps, without asking the database' },
  ...jsonOption,
} as const;

export const migrateCommand: Command = {
  name: 'migrate',
  summary: "brings the store's schema up to date, or prints the SQL that does",
  usage: 'migrate [--store <url>] [--print [--all]]',
  options,
  examples: [
    'millrace migrate',
    'millrace migrate --store postgres://localhost/shop --print',
    'millrace migrate --store postgres://localhost/shop --print --all > schema.sql',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'migrate', args: context.args }, options);
    if (positionals.length > 0) throw usage('migrate takes no argument: the store is an option');
    if (values.all === true && values.print !== true) throw usage('--all goes with --print');
    const url = storeUrl(context, values.store);
    const store = await shownStore(context, url);
    const { eventStoreSchema } = await import('../platform/event-store-schema.ts');
    const schema = await eventStoreSchema(url);

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
