// `millrace projections status`: which versions there are, which is asked, and how far each is.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;
const name = 'projections status';

export const projectionsStatusCommand: Command = {
  name,
  summary: 'lists read models: their versions, which one is asked, how far each is',
  usage: name,
  options,
  examples: [`millrace ${name}`, `millrace ${name} --store postgres://localhost/shop --json`],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length > 0) throw usage(`${name} takes no argument: the store is an option`);
    await using store = await openExistingStore(context, values.store);
    const { projectionStatus } = await import('../projections/switch-projection.ts');
    const all = await projectionStatus(store);
    if (values.json === true) {
      stdout.write(`${JSON.stringify(all, null, 2)}\n`);
      return exitCodes.ok;
    }
    if (all.length === 0) stdout.write('no projection was ever started on this store\n');
    for (const each of all) {
      const { family, version, projection, status, active, behind, paused, deadLetters } = each;
      const notes = [
        behind === undefined
          ? 'never ran'
          : `${grouped(behind)} ${behind === 1 ? 'event' : 'events'} behind`,
        ...(paused ? ['paused'] : []),
        ...(deadLetters > 0 ? [paint.yellow(`${grouped(deadLetters)} dead letters`)] : []),
      ];
      const state = active ? paint.green(`${status}, asked`) : status;
      stdout.write(`${family} v${version}  ${state}  ${projection}  ${notes.join(', ')}\n`);
    }
    return exitCodes.ok;
  },
};
