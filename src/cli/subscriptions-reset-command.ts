// `millrace subscriptions reset`: moves a checkpoint, so that events are handled again, or left out.

import { placeOf } from '../subscriptions/subscription-overview.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import {
  askedBy,
  byOption,
  openSubscriptions,
  subscriptionArgument,
} from './open-subscriptions.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';

const name = 'subscriptions reset';

const options = {
  ...storeOption,
  to: { type: 'string', value: 'place', summary: 'start, a position, or a date and time' },
  yes: { type: 'boolean', summary: 'says that it is meant' },
  ...byOption,
  ...jsonOption,
} as const;

export const subscriptionsResetCommand: Command = {
  name,
  summary: 'begins again behind a place: what follows it is handled again',
  usage: `${name} <subscription> --to <place> --yes`,
  options,
  examples: [
    `millrace ${name} sub:core-lookup:currency-projection:v1 --to start --yes`,
    `millrace ${name} sub:core-lookup:currency-projection:v1 --to 0000000000004711 --yes`,
    `millrace ${name} sub:core-lookup:currency-projection:v1 --to 2026-09-30T10:00:00Z --yes`,
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const subscription = subscriptionArgument(name, positionals);
    if (values.to === undefined) throw usage(`${name} needs --to: where it begins again`);
    if (values.yes !== true) {
      throw usage(`${subscription} will handle events again: pass --yes if that is meant`);
    }
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, store } = subscriptions;
    const to = await placeOf(values.to, admin);
    if (to === undefined) {
      throw usage(
        `--to takes start, a position of 16 digits, or a date and time, not '${values.to}'`,
      );
    }
    const deed = { action: 'subscription.reset', target: `${subscription} to ${to}` };
    await onRecord(store, deed, () =>
      admin.reset(subscription, { to, by: askedBy(context, values.by) }),
    );
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ subscription, position: to })}\n`
        : `${paint.green('reset')} ${subscription} to ${to}\n`,
    );
    return exitCodes.ok;
  },
};
