// Opens the engines of the module: from its options, else from the variables of the outbox document.

import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { OutboxSettings } from '../platform/config/outbox-environment.ts';
import type { RoleMap } from '../platform/engines/engine-roles.ts';
import { createEngineSet } from '../platform/engines/open-engines.ts';
import type { SubscriptionStorage } from '../subscriptions/subscription-storage.ts';
import type { WorkQueue } from '../work/work-queue.ts';
import type {
  MillraceModuleOptions,
  MillraceOutboxOptions,
  MillraceRoles,
} from './millrace-options.ts';

export interface OpenedRoles extends Partial<Omit<MillraceRoles, typeof Symbol.asyncDispose>> {
  readonly queue?: WorkQueue | undefined;
}

/** A ledger that can also store the checkpoints of its projectors, in the same database. */
interface LedgerWithCheckpoints extends OutboxLedger {
  subscriptions(): Promise<SubscriptionStorage>;
}

/** Opens URLs and takes the given roles; everything that closes with the application is added to the stack. */
export async function openRoles(
  options: MillraceModuleOptions,
  { settings, observer }: { readonly settings: OutboxSettings; readonly observer: Observer },
  opened: AsyncDisposableStack,
): Promise<OpenedRoles> {
  const outbox = outboxOf(options);
  const isOutboxOff = options.outbox === false;
  const target = options.store ?? settings.store;
  const ledger = outbox.ledger ?? (isOutboxOff ? undefined : settings.outbox);
  const queue = outbox.queue && (outbox.queue.queue ?? settings.queue);
  if (target === undefined && ledger === undefined) {
    throw new MillraceError(
      'CONFIG_INVALID',
      "the module needs the option 'store', 'outbox.ledger', or both",
      { details: { field: 'store' } },
    );
  }
  if (outbox.queue !== undefined && queue === undefined) {
    throw new MillraceError(
      'CONFIG_INVALID',
      "the option 'outbox.queue' needs a queue: set 'outbox.queue.queue', MILLRACE_QUEUE, or REDIS_HOST and REDIS_PORT",
      { details: { field: 'outbox.queue' } },
    );
  }
  for (const each of [target, ledger, queue]) if (isDisposable(each)) opened.use(each);
  const engines = opened.use(
    createEngineSet(
      {
        urls: { store: urlOf(target), outbox: urlOf(ledger), queue: urlOf(queue) },
        // Never required: a required role without an engine would be a local file, which other processes do not see.
        needs: {
          subscriptions: 'optional',
          outbox: isOutboxOff ? 'unused' : 'optional',
          queue: typeof queue === 'string' ? 'optional' : 'unused',
        },
      },
      { observer, outboxMaxAttempts: settings.maxAttempts },
    ),
  );
  const open = async <Role extends keyof RoleMap>(role: Role): Promise<RoleMap[Role] | undefined> =>
    engines.has(role) ? engines.open(role) : undefined;

  async function openOutbox(): Promise<OutboxLedger | undefined> {
    if (isOutboxOff) return undefined;
    if (typeof ledger === 'object') return ledger;
    return ledger === undefined && typeof target === 'object' ? target.outbox : open('outbox');
  }

  async function openOthers(): Promise<OpenedRoles> {
    return {
      outbox: await openOutbox(),
      queue: typeof queue === 'string' ? await engines.open('queue') : queue,
    };
  }

  /** An event store without checkpoints has them in the database of the ledger. */
  async function nextToOutbox(): Promise<SubscriptionStorage | undefined> {
    return typeof ledger === 'object' && hasCheckpoints(ledger)
      ? ledger.subscriptions()
      : undefined;
  }

  if (target === undefined) return openOthers();
  if (typeof target === 'object') {
    const { store, subscriptions = await nextToOutbox(), leases } = checkRoles(target);
    return { store, subscriptions, leases, ...(await openOthers()) };
  }
  const store = await engines.open('store');
  const subscriptions = (await open('subscriptions')) ?? (await nextToOutbox());
  return { store, subscriptions, ...(await openOthers()) };
}

export function outboxOf({ outbox = {} }: MillraceModuleOptions): MillraceOutboxOptions {
  return outbox === false ? {} : outbox;
}

export function isDisposable(value: unknown): value is AsyncDisposable {
  return Object(value) === value && Symbol.asyncDispose in (value as object);
}

function hasCheckpoints(ledger: OutboxLedger): ledger is LedgerWithCheckpoints {
  return 'subscriptions' in ledger && typeof ledger.subscriptions === 'function';
}

function urlOf(target: unknown): string | undefined {
  return typeof target === 'string' ? target : undefined;
}

/** For factories without types: an event store is not an object of roles. */
function checkRoles(roles: MillraceRoles): MillraceRoles {
  if ((roles as Partial<MillraceRoles>).store !== undefined) return roles;
  throw new MillraceError(
    'CONFIG_INVALID',
    "the object in the option 'store' has no event store: pass the handle of an engine, or { store, subscriptions, … }",
    { details: { field: 'store' } },
  );
}
