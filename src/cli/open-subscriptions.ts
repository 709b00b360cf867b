// Subscriptions as the command line works on them: those of the store that `--store` names.

import { MillraceError } from '../foundation/error.ts';
import type { EventStore } from '../store/event-store.ts';
import { subscriptionAdmin, type SubscriptionAdmin } from '../subscriptions/subscription-admin.ts';
import type {
  SubscriptionHost,
  SubscriptionStorage,
} from '../subscriptions/subscription-storage.ts';
import { usage, type CommandContext } from './command.ts';
import { openExistingStore } from './store-option.ts';

export interface Subscriptions extends AsyncDisposable {
  /** For the record of what is done. */
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
    throw new MillraceError('NOT_SUPPORTED', 'this store keeps no subscriptions', {
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

/** The subscription that a command is about: its one argument. */
export function subscriptionArgument(command: string, positionals: readonly string[]): string {
  const [name, ...rest] = positionals;
  if (name === undefined || name === '' || rest.length > 0) {
    throw usage(
      `${command} takes one subscription, such as sub:core-lookup:currency-projection:v1`,
    );
  }
  return name;
}

export const byOption = {
  by: { type: 'string', value: 'name', summary: 'who asks for it (the user)' },
} as const;

export function askedBy({ env }: Pick<CommandContext, 'env'>, given: string | undefined): string {
  return given ?? env['USER'] ?? env['USERNAME'] ?? 'millrace';
}
