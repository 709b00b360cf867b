// `millrace outbox replay`: dead messages are due again, with all their attempts ahead.

import { filterText } from '../platform/audit-log.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { outboxOnRecord } from './on-record.ts';
import { openOutbox, outboxFilterOf, outboxFilterOptions } from './open-outbox.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeOption, outboxSections } from './store-option.ts';

const name = 'outbox replay';

const options = {
  ...storeOption,
  ...outboxFilterOptions,
  all: { type: 'boolean', summary: 'all that are dead' },
  yes: { type: 'boolean', summary: 'says that several are meant' },
  ...jsonOption,
} as const;

export const outboxReplayCommand: Command = {
  name,
  summary: 'sends dead messages again',
  usage: `${name} (<id>… | --all | <filter>) [--yes]`,
  options,
  examples: [
    `millrace ${name} 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77`,
    `millrace ${name} --to webhook:partner-x --since 12h --yes`,
    `millrace ${name} --all --yes --json`,
  ],
  sections: outboxSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals: ids } = readArgs({ name, args: context.args }, options);
    const filter = outboxFilterOf(values, Date.now());
    const ways = [ids.length > 0, values.all === true, Object.keys(filter).length > 0];
    if (ways.filter(Boolean).length !== 1) {
      throw usage(`${name} takes ids, a filter (such as --to), or --all`);
    }
    if (ids.length === 0 && values.yes !== true) {
      throw usage('several messages may be sent again: pass --yes if that is meant');
    }
    await using ledger = await openOutbox(context, values.store);
    const chosen = ids.length > 0 ? { ids } : filter;
    const deed = { action: 'outbox.replay', target: filterText(chosen), given: values.store };
    const replayed = await outboxOnRecord(context, deed, () => ledger.replay(chosen));
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ replayed })}\n`
        : `${paint.green('due again')} ${grouped(replayed)}\n`,
    );
    // One that is not there, or not dead, must not pass for replayed.
    return ids.length > replayed ? exitCodes.failed : exitCodes.ok;
  },
};
