// `millrace subscriptions …`: shows, pauses, resumes and resets the subscriptions of an event store.

import { MillraceError } from '../../foundation/error.ts';
import type { EventStore } from '../../store/event-store.ts';
import {
  subscriptionAdmin,
  placeOf,
  subscriptionOverview,
  type SubscriptionAdmin,
} from '../../subscriptions/subscription-admin.ts';
import type {
  SubscriptionHost,
  SubscriptionStorage,
} from '../../subscriptions/subscription-storage.ts';
import { audited, byOption, operatorName } from '../audit.ts';
import {
  defineCommand,
  exitCodes,
  noArguments,
  oneArgument,
  printResult,
  usage,
  type Command,
  type CommandContext,
} from '../command.ts';
import { jsonOption } from '../options.ts';
import { openExistingStore, storeOption, storeSections } from '../stores.ts';
import { grouped, textTable } from '../terminal/text.ts';

const oneSubscription = 'subscription, such as sub:core-lookup:currency-projection:v1';

const list = defineCommand({
  name: 'subscriptions list',
  summary: 'lists subscriptions with their state and dead letters (NDJSON with --json)',
  usage: 'subscriptions list',
  options: { ...storeOption, ...jsonOption },
  examples: ['millrace subscriptions list', 'millrace subscriptions list --json'],
  sections: storeSections,
  async run(context, input) {
    const { stdout, stderr, paint } = context;
    const { values } = input;
    noArguments(input);
    await using subscriptions = await openSubscriptions(context, values.store);
    const rows = await subscriptionOverview(subscriptions.admin, subscriptions.storage);
    if (values.json === true) {
      stdout.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    } else if (rows.length === 0) {
      stderr.write('no subscriptions: none was ever started on this store\n');
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
});

const lag = defineCommand({
  name: 'subscriptions lag',
  summary: 'shows how far subscriptions are behind the store (NDJSON with --json)',
  usage: 'subscriptions lag [<subscription>]',
  options: { ...storeOption, ...jsonOption },
  examples: [
    'millrace subscriptions lag',
    'millrace subscriptions lag sub:core-lookup:currency-projection:v1 --json',
  ],
  sections: storeSections,
  async run(context, input) {
    const { stdout, paint } = context;
    const { values, positionals } = input;
    const only = positionals.length === 0 ? undefined : oneArgument(input, oneSubscription);
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
});

/** Running processes notice the change within about a second. */
function pauseCommand(
  verb: 'pause' | 'resume',
  { summary, done }: { readonly summary: string; readonly done: string },
): Command {
  const name = `subscriptions ${verb}`;
  return defineCommand({
    name,
    summary,
    usage: `${name} <subscription>`,
    options: { ...storeOption, ...jsonOption },
    examples: [`millrace ${name} sub:core-lookup:currency-projection:v1`],
    sections: storeSections,
    async run(context, input) {
      const { values } = input;
      const subscription = oneArgument(input, oneSubscription);
      await using subscriptions = await openSubscriptions(context, values.store);
      const { store, admin } = subscriptions;
      const action = { store, action: `subscription.${verb}`, target: subscription };
      await audited(context, action, () => admin[verb](subscription));
      return printResult(context, values, {
        json: { subscription, paused: verb === 'pause' },
        text: `${context.paint.green(done)} ${subscription}`,
      });
    },
  });
}

const pause = pauseCommand('pause', {
  summary: 'pauses a subscription in all processes; running handlers finish',
  done: 'paused',
});

const resume = pauseCommand('resume', {
  summary: 'resumes a paused subscription',
  done: 'resumed',
});

const reset = defineCommand({
  name: 'subscriptions reset',
  summary: 'moves the checkpoint of a subscription; the events after it are handled again',
  usage: 'subscriptions reset <subscription> --to <place> --yes',
  options: {
    ...storeOption,
    to: { type: 'string', value: 'place', summary: 'start, a position, or a date and time' },
    yes: { type: 'boolean', summary: 'confirms that events are handled again' },
    ...byOption,
    ...jsonOption,
  },
  examples: [
    'millrace subscriptions reset sub:core-lookup:currency-projection:v1 --to start --yes',
    'millrace subscriptions reset sub:core-lookup:currency-projection:v1 --to 0000000000004711 --yes',
    'millrace subscriptions reset sub:core-lookup:currency-projection:v1 --to 2026-09-30T10:00:00Z --yes',
  ],
  sections: storeSections,
  async run(context, input) {
    const { name, values } = input;
    const subscription = oneArgument(input, oneSubscription);
    if (values.to === undefined) throw usage(`${name} needs --to, such as --to start`);
    if (values.yes !== true) {
      throw usage(`${subscription} will handle events again: pass --yes to confirm`);
    }
    await using subscriptions = await openSubscriptions(context, values.store);
    const { admin, store } = subscriptions;
    const to = await placeOf(values.to, admin);
    if (to === undefined) {
      throw usage(
        `--to takes start, a position of 16 digits, or a date and time, not '${values.to}'`,
      );
    }
    const by = values.by ?? operatorName(context);
    const action = { store, action: 'subscription.reset', target: `${subscription} to ${to}` };
    await audited(context, action, () => admin.reset(subscription, { to, by }));
    return printResult(context, values, {
      json: { subscription, position: to },
      text: `${context.paint.green('reset')} ${subscription} to ${to}`,
    });
  },
});

export const subscriptionCommands: readonly Command[] = [list, lag, pause, resume, reset];

export interface Subscriptions extends AsyncDisposable {
  readonly store: EventStore;
  readonly storage: SubscriptionStorage;
  readonly admin: SubscriptionAdmin;
}

export async function openSubscriptions(
  context: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<Subscriptions> {
  const store: EventStore & Partial<SubscriptionHost> = await openExistingStore(context, given);
  const { subscriptions: storage } = store;
  if (storage === undefined) {
    await store[Symbol.asyncDispose]();
    throw new MillraceError('NOT_SUPPORTED', 'this store does not keep subscriptions', {
      details: { field: 'store' },
    });
  }
  return {
    store,
    storage,
    admin: subscriptionAdmin(store, { storage }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
