// `millrace dlq discard`: gives dead letters up, for a reason that is kept.

import { filterText } from '../platform/audit-log.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { chosenLetters, letterFilterOptions } from './letter-filter-options.ts';
import { askedBy, byOption, openSubscriptions } from './open-subscriptions.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';

const name = 'dlq discard';

const options = {
  ...storeOption,
  ...letterFilterOptions,
  all: { type: 'boolean', summary: 'all that are pending' },
  reason: { type: 'string', value: 'text', summary: 'why; it is kept with the letter' },
  yes: { type: 'boolean', summary: 'says that several are meant' },
  ...byOption,
  ...jsonOption,
} as const;

export const dlqDiscardCommand: Command = {
  name,
  summary: 'gives up one dead letter or many; what waits behind them goes on',
  usage: `${name} (<id> | --all | <filter>) --reason <text> [--yes]`,
  options,
  examples: [
    `millrace ${name} 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --reason 'a test payment'`,
    `millrace ${name} --type account.credited.v1 --tenant demo --reason 'demo data' --yes`,
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals: ids } = readArgs({ name, args: context.args }, options);
    const { reason } = values;
    if (reason === undefined || reason.trim() === '') throw usage(`${name} needs a --reason`);
    const filter = chosenLetters({ command: name, ids }, values, Date.now());
    const [id] = ids;
    if (ids.length !== 1 && values.yes !== true) {
      throw usage('nothing brings discarded letters back: pass --yes if several are meant');
    }
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, store } = subscriptions;
    const request = { by: askedBy(context, values.by), reason };
    const target = ids.length === 1 ? String(id) : filterText(filter);
    const deed = { action: 'dead-letter.discard', target };
    const discarded = await onRecord(store, deed, async () => {
      if (ids.length !== 1 || id === undefined) return admin.discardAll(filter, request);
      // One that is not there, or not pending, is told by name.
      await admin.discard(id, request);
      return 1;
    });
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ discarded })}\n`
        : `${paint.green('discarded')} ${grouped(discarded)}\n`,
    );
    return exitCodes.ok;
  },
};
