// `millrace subscriptions list`: what there is, who works on it, and how it is doing.

import { subscriptionOverview } from '../subscriptions/subscription-overview.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { openSubscriptions } from './open-subscriptions.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';
import { textTable } from './text-table.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const subscriptionsListCommand: Command = {
  name: 'subscriptions list',
  summary: 'shows the subscriptions, their state and dead letters, with --json as NDJSON',
  usage: 'subscriptions list',
  options,
  examples: ['millrace subscriptions list', 'millrace subscriptions list --json'],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr, paint } = context;
    const { values, positionals } = readArgs(
      { name: 'subscriptions list', args: context.args },
      options,
    );
    if (positionals.length > 0) throw usage('subscriptions list takes no argument');
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, storage } = subscriptions;
    const rows = await subscriptionOverview(admin, storage);
    if (values.json === true) {
      stdout.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    } else if (rows.length === 0) {
      stderr.write('no subscription was ever started here\n');
    } else {
      const cells = rows.map((row) => [
        row.subscription,
        row.state,
        grouped(row.shards),
        grouped(row.workers),
        grouped(row.waiting),
        grouped(row.deadLetters),
      ]);
      const titles = ['subscription', 'state', 'shards', 'processes', 'waiting', 'dead letters'];
      stdout.write(textTable(titles, cells, paint));
    }
    return exitCodes.ok;
  },
};
