// `millrace sagas resume`: lets a parked saga go on, with what it is parked at or without it.

import { userInfo } from 'node:os';
import { exitCodes, readArgs, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { sagaArgument, sagaHost } from './saga-argument.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = {
  ...storeOption,
  skip: { type: 'boolean', summary: 'goes on without what it is parked at: it was done by hand' },
  by: { type: 'string', value: 'name', summary: 'who says so (the user of this machine)' },
  note: { type: 'string', value: 'text', summary: 'why: it is kept in the saga' },
  ...jsonOption,
} as const;

export const sagasResumeCommand: Command = {
  name: 'sagas resume',
  summary: 'lets a parked saga try again, or go on without it',
  usage: 'sagas resume <stream> [--skip] [--note <text>]',
  options,
  examples: [
    'millrace sagas resume shop.fulfilment.v1-core-o1',
    'millrace sagas resume shop.fulfilment.v1-core-o1 --skip --note "refunded by hand"',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'sagas resume', args: context.args }, options);
    const stream = sagaArgument('sagas resume', positionals);
    const { by = userInfo().username, note } = values;
    const how = values.skip === true ? 'skip' : 'resume';
    await using store = await openExistingStore(context, values.store);
    const { sagaAt } = await import('../reactors/saga-at.ts');
    const { sagas, address } = await sagaAt(sagaHost(store), stream);
    await onRecord(store, { action: `saga.${how}`, target: stream }, () =>
      sagas[how](address, note === undefined ? { by } : { by, note }),
    );
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ stream, how })}\n`
        : `${paint.green(how === 'skip' ? 'skipped' : 'resumed')} ${stream}\n`,
    );
    return exitCodes.ok;
  },
};
