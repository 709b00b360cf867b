// `millrace dlq note`: what whoever looked into it found out.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { openSubscriptions } from './open-subscriptions.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const dlqNoteCommand: Command = {
  name: 'dlq note',
  summary: 'writes a note to a dead letter, in place of the one before',
  usage: 'dlq note <id> <text>',
  options,
  examples: ["millrace dlq note 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 'asked the bank'"],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'dlq note', args: context.args }, options);
    const [id, notes, ...rest] = positionals;
    if (id === undefined || notes === undefined || rest.length > 0) {
      throw usage('dlq note takes an id and one text, in quotes');
    }
    await using subscriptions = await openSubscriptions(context, values.store);
    await onRecord(subscriptions.store, { action: 'dead-letter.note', target: id }, () =>
      subscriptions.admin.note(id, notes),
    );
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ id, notes })}\n`
        : `${paint.green('noted')} ${id}\n`,
    );
    return exitCodes.ok;
  },
};
