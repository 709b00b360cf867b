// `millrace subscriptions …`: shows, pauses, resumes and resets the subscriptions of an event store.

import type { EventStore } from '../../store/event-store.ts';
import {
  subscriptionAdmin,
  parseResetPosition,
  subscriptionOverview,
  type SubscriptionAdmin,
} from '../../subscriptions/subscription-admin.ts';
import type { SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import { audited, byOption, operatorName } from '../audit.ts';
import {
  defineCommand,
  optionalArgument,
  usage,
  type Command,
  type CommandContext,
} from '../command.ts';
import { checkConfirmed, flag, option } from '../options.ts';
import { openExistingRoles, storeOption } from '../stores.ts';
import { counted, grouped, textTable } from '../terminal/text.ts';

const oneSubscription = 'subscription, such as sub:core-lookup:currency-projection:v1';

const list = defineCommand({
  name: 'subscriptions list',
  summary: 'lists subscriptions with their state and dead letters (NDJSON with --json)',
  options: storeOption,
  examples: ['millrace subscriptions list', 'millrace subscriptions list --json'],
  async run(context) {
    await using subscriptions = await openSubscriptions(context, context.values.store);
    const items = await subscriptionOverview(subscriptions.admin, subscriptions.storage);
    const cells = items.map((row) => [
      row.subscription,
      row.state,
      grouped(row.shards),
      grouped(row.workers),
      grouped(row.waiting),
      grouped(row.deadLetters),
    ]);
    const titles = ['subscription', 'state', 'shards', 'processes', 'waiting', 'dead letters'];
    return {
      items,
      text: items.length === 0 ? '' : textTable(titles, cells, context.paint),
      none: 'no subscriptions: none was ever started on this store',
    };
  },
});

const lag = defineCommand({
  name: 'subscriptions lag',
  summary: 'shows how far subscriptions are behind the store (NDJSON with --json)',
  usage: '[<subscription>]',
  options: storeOption,
  examples: [
    'millrace subscriptions lag',
    'millrace subscriptions lag sub:core-lookup:currency-projection:v1 --json',
  ],
  hasArguments: true,
  async run(context) {
    const only = optionalArgument(context, oneSubscription);
    await using subscriptions = await openSubscriptions(context, context.values.store);
    const { admin } = subscriptions;
    const names =
      only === undefined ? (await admin.list()).map(({ subscription }) => subscription) : [only];
    const items = await Promise.all(
      names.map(async (subscription) => ({ subscription, ...(await admin.lag(subscription)) })),
    );
    const cells = items.map(({ subscription, position, behind, unit, seconds }) => [
      subscription,
      position,
      counted(behind, unit === 'bytes' ? 'byte' : 'event'),
      `${seconds.toFixed(1)} s`,
    ]);
    const titles = ['subscription', 'position', 'behind', 'lag'];
    return { items, text: textTable(titles, cells, context.paint) };
  },
});

/** Running processes notice the change within about a second. */
function pauseCommand(verb: 'pause' | 'resume', summary: string): Command {
  const name = `subscriptions ${verb}`;
  return defineCommand({
    name,
    summary,
    usage: '<subscription>',
    options: storeOption,
    examples: [`millrace ${name} sub:core-lookup:currency-projection:v1`],
    argument: oneSubscription,
    async run(context) {
      const { argument: subscription, paint } = context;
      await using subscriptions = await openSubscriptions(context, context.values.store);
      const { store, admin } = subscriptions;
      const action = { store, action: `subscription.${verb}`, target: subscription };
      await audited(context, action, () => admin[verb](subscription));
      return {
        json: { subscription, paused: verb === 'pause' },
        text: `${paint.green(`${verb}d`)} ${subscription}`,
      };
    },
  });
}

const reset = defineCommand({
  name: 'subscriptions reset',
  summary: 'moves the checkpoint of a subscription; the events after it are handled again',
  usage: '<subscription> --to <position> --yes',
  options: {
    ...storeOption,
    to: option('position', 'start, a position, or a date and time'),
    yes: flag('confirms that events are handled again'),
    ...byOption,
  },
  examples: [
    'millrace subscriptions reset sub:core-lookup:currency-projection:v1 --to start --yes',
    'millrace subscriptions reset sub:core-lookup:currency-projection:v1 --to 0000000000004711 --yes',
    'millrace subscriptions reset sub:core-lookup:currency-projection:v1 --to 2026-09-30T10:00:00Z --yes',
  ],
  argument: oneSubscription,
  async run(context) {
    const { name, values, argument: subscription, paint } = context;
    if (values.to === undefined) throw usage(`${name} needs --to, such as --to start`);
    checkConfirmed(values, `${subscription} will handle events again`);
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, store } = subscriptions;
    const to = await parseResetPosition(values.to, admin);
    if (to === undefined) {
      throw usage(
        `--to takes start, a position of 16 digits, or a date and time, not '${values.to}'`,
      );
    }
    const by = values.by ?? operatorName(context);
    const action = { store, action: 'subscription.reset', target: `${subscription} to ${to}` };
    await audited(context, action, () => admin.reset(subscription, { to, by }));
    return {
      json: { subscription, position: to },
      text: `${paint.green('reset')} ${subscription} to ${to}`,
    };
  },
});

export const subscriptionCommands: readonly Command[] = [
  list,
  lag,
  pauseCommand('pause', 'pauses a subscription in all processes; running handlers finish'),
  pauseCommand('resume', 'resumes a paused subscription'),
  reset,
];

export interface Subscriptions extends AsyncDisposable {
  readonly store: EventStore;
  readonly storage: SubscriptionStorage;
  readonly admin: SubscriptionAdmin;
}

export async function openSubscriptions(
  context: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<Subscriptions> {
  const engines = await openExistingRoles(context, given);
  try {
    const [store, subscriptions] = [
      await engines.open('store'),
      await engines.open('subscriptions'),
    ];
    const leases = await engines.leases();
    return {
      store,
      storage: subscriptions,
      admin: subscriptionAdmin({ store, subscriptions, leases }),
      [Symbol.asyncDispose]: () => engines[Symbol.asyncDispose](),
    };
  } catch (error) {
    await engines[Symbol.asyncDispose]();
    throw error;
  }
}
