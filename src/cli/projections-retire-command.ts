// `millrace projections retire`: removes the documents of a version that nobody asks any more.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { createProgress } from './progress.ts';
import { grouped } from './progress-bar.ts';
import { loadProjections, modulesOption } from './projection-modules.ts';
import { versionArgument } from './projection-version.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = {
  ...modulesOption,
  yes: { type: 'boolean', summary: 'confirms that its documents are removed' },
  ...storeOption,
  ...jsonOption,
} as const;
const name = 'projections retire';

export const projectionsRetireCommand: Command = {
  name,
  summary: 'stops a version that is not asked, and removes its documents; goes on if stopped',
  usage: `${name} <projection> --yes`,
  options,
  examples: [`millrace ${name} sub:banking:accounts:v1 --yes`],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length === 1 && values.yes !== true) {
      throw usage(`${name} removes all documents of ${positionals[0]}: pass --yes`);
    }
    const { readModels } = await loadProjections(context, values.modules);
    await using store = await openExistingStore(context, values.store);
    const version = await versionArgument(store, name, positionals);
    const { retireProjection } = await import('../projections/switch-projection.ts');
    const progress = createProgress(stderr);
    const deed = { action: 'projection.retire', target: version.name };
    const removed = await onRecord(store, deed, () =>
      retireProjection(store, version, {
        signal,
        onProgress: (count) => progress.show(`${grouped(count)} documents removed`),
        ...(readModels === undefined ? {} : { readModels }),
      }),
    ).finally(() => progress.clear());
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ removed })}\n`
        : `${paint.green('retired')} ${version.name}: ${grouped(removed)} documents removed\n`,
    );
    return exitCodes.ok;
  },
};
