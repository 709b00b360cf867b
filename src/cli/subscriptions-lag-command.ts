// `millrace subscriptions lag`: how far each is behind the store.

import { exitCodes, readArgs, type Command } from './command.ts';
import { openSubscriptions, subscriptionArgument } from './open-subscriptions.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';
import { textTable } from './text-table.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const subscriptionsLagCommand: Command = {
  name: 'subscriptions lag',
  summary: 'shows how far one subscription or each is behind, with --json as NDJSON',
  usage: 'subscriptions lag [<subscription>]',
  options,
  examples: [
    'millrace subscriptions lag',
    'millrace subscriptions lag sub:core-lookup:currency-projection:v1 --json',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs(
      { name: 'subscriptions lag', args: context.args },
      options,
    );
    const only =
      positionals.length === 0 ? undefined : subscriptionArgument('subscriptions lag', positionals);
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin } = subscriptions;
    const names =
      only === undefined ? (await admin.list()).map(({ subscription }) => subscription) : [only];
    const rows = await Promise.all(
      names.map(async (subscription) => ({ subscription, ...(await admin.lag(subscription)) })),
    );
    if (values.json === true) {
      stdout.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
      return exitCodes.ok;
    }
    const cells = rows.map(({ subscription, position, behind, seconds }) => [
      subscription,
      position,
      grouped(behind),
      `${seconds.toFixed(1)} s`,
    ]);
    stdout.write(textTable(['subscription', 'position', 'behind', 'lag'], cells, paint));
    return exitCodes.ok;
  },
};
