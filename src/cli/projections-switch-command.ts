// `millrace projections switch`: lets queries ask another version, from one moment to the next.

import { exitCodes, readArgs, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { versionArgument } from './projection-version.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;
const name = 'projections switch';

export const projectionsSwitchCommand: Command = {
  name,
  summary: 'lets queries ask this version, which must have caught up',
  usage: `${name} <projection>`,
  options,
  examples: [`millrace ${name} sub:banking:accounts:v2`],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    await using store = await openExistingStore(context, values.store);
    const version = await versionArgument(store, name, positionals);
    const { switchProjection } = await import('../projections/switch-projection.ts');
    const deed = { action: 'projection.switch', target: version.name };
    await onRecord(store, deed, () => switchProjection(store, version));
    const { bc, aggregate, version: number } = version.readModel;
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ family: `${bc}.${aggregate}`, active: number })}\n`
        : `${paint.green('switched')} ${bc}.${aggregate} to v${number}\n`,
    );
    return exitCodes.ok;
  },
};
