// `millrace dlq show`: everything that is known of one dead letter.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { letterPage } from './dead-letter-text.ts';
import { openSubscriptions } from './open-subscriptions.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const dlqShowCommand: Command = {
  name: 'dlq show',
  summary: 'shows a dead letter with its payload and all attempts',
  usage: 'dlq show <id>',
  options,
  examples: ['millrace dlq show 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json'],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'dlq show', args: context.args }, options);
    const [id, ...rest] = positionals;
    if (id === undefined || rest.length > 0) throw usage('dlq show takes one id');
    await using subscriptions = await openSubscriptions(context, values.store);
    const letter = await subscriptions.admin.letter(id);
    stdout.write(
      values.json === true ? `${JSON.stringify(letter, null, 2)}\n` : letterPage(letter, paint),
    );
    return exitCodes.ok;
  },
};
