// Opens the event store and the outbox of a command: from `--store`, the environment, or the default file.

import { relative } from 'node:path';
import { urlInFolder } from '../contracts/engine-url.ts';
import { MillraceError } from '../foundation/error.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { EngineOptions, EngineSet } from '../platform/engines/open-engines.ts';
import type { EventStore } from '../store/event-store.ts';
import type { CommandContext, HelpSection } from './command.ts';
import { option } from './options.ts';

const storeDefault = 'sqlite:.millrace/events.db';
const storeVariable = 'MILLRACE_STORE';
const outboxVariable = 'MILLRACE_OUTBOX';

const storeSection: HelpSection = {
  title: 'Stores',
  rows: [
    ['sqlite:<file>', 'a local file, without a server'],
    ['postgres://user:password@host/database', 'PostgreSQL; ?schema=<name> selects the schema'],
    [storeVariable, 'environment variable, used if --store is not given'],
  ],
};

const storeUrlOption = option('url', `event store (default: ${storeDefault})`);

export const storeOption = { store: { ...storeUrlOption, section: storeSection } };

/** Options of a command on an outbox. */
export const outboxOption = {
  store: {
    ...storeUrlOption,
    section: {
      title: storeSection.title,
      rows: [
        ...storeSection.rows,
        [outboxVariable, 'environment variable, for an outbox in another database than the events'],
      ] as const,
    },
  },
};

/** Options of a command on jobs, which are audited in the event store. */
export const auditStoreOption = { store: storeUrlOption };

type StoreContext = Pick<CommandContext, 'cwd' | 'env'>;

/** Relative file paths are resolved against the current directory. */
export function storeUrl(context: StoreContext, given: string | undefined): string {
  return urlOf(context, given, [storeVariable]);
}

/** The URL of the outbox, or else that of the event store. */
export function outboxUrl(context: StoreContext, given: string | undefined): string {
  return urlOf(context, given, [outboxVariable, storeVariable]);
}

function urlOf(
  { cwd, env }: StoreContext,
  given: string | undefined,
  variables: readonly string[],
): string {
  const set = variables
    .map((name) => env[name])
    .find((value) => value !== undefined && value !== '');
  const url = given ?? set ?? storeDefault;
  return urlInFolder(url, cwd);
}

/** The URL for messages: without a password, and with a file path relative to the current directory. */
export async function displayUrl({ cwd }: Pick<StoreContext, 'cwd'>, url: string): Promise<string> {
  const { redactUrl } = await import('../platform/engines/engine-url.ts');
  const path = /^sqlite:(.+)$/.exec(url)?.[1];
  if (path === undefined) return redactUrl(url);
  const near = relative(cwd, path);
  return `sqlite:${near === '' || near.startsWith('..') ? path : near}`;
}

/** Creates the store if it does not exist. */
export async function openStore(
  context: StoreContext,
  given: string | undefined,
  options: EngineOptions = {},
): Promise<EventStore> {
  const { openRole } = await import('../platform/engines/open-engines.ts');
  return openRole(storeUrl(context, given), 'store', options);
}

/** Fails if the store does not exist, so that a mistyped path creates no file; migrates nothing. */
export async function openExistingStore(
  context: StoreContext,
  given: string | undefined,
): Promise<EventStore> {
  await checkExists(context, storeUrl(context, given));
  return openStore(context, given, { migrate: 'off' });
}

/**
 * The engines of store, outbox, keys, bus and tasks, as the environment or the configuration file names them. Roles that the store
 * lacks, such as the checkpoints of a KurrentDB store, are in one of the others. Fails if a database does not exist;
 * migrates nothing.
 */
export async function openExistingRoles(
  context: StoreContext,
  given: string | undefined,
): Promise<EngineSet> {
  const { loadConfig } = await import('../platform/config/millrace-config.ts');
  const { engines: { store = '', outbox, keys, bus, tasks } = {} } = await loadConfig(context);
  const url = given === undefined ? store : storeUrl(context, given);
  const urls = { store: url, outbox, keys, bus, tasks };
  const { createEngineSet } = await import('../platform/engines/open-engines.ts');
  const engines = createEngineSet({ urls, needs: {} }, { migrate: 'off' });
  await checkExists(context, urls.store);
  if (!engines.isShared('store', 'subscriptions') && engines.has('subscriptions')) {
    const side = engines.isShared('outbox', 'subscriptions') ? urls.outbox : urls.keys;
    if (side !== undefined) await checkExists(context, side);
  }
  return engines;
}

async function checkExists(context: StoreContext, url: string): Promise<void> {
  const { eventStoreSchema } = await import('../platform/engines/engine-schemas.ts');
  const schema = await eventStoreSchema(url);
  const { length: left } = await schema.pending();
  if (left > 0) {
    const store = await displayUrl(context, url);
    const problem =
      left === schema.steps.length
        ? `there is no event store at ${store} yet`
        : `the schema of ${store} lacks ${left} of ${schema.steps.length} migrations`;
    throw new MillraceError('CONFIG_INVALID', `${problem}: run millrace migrate`, {
      details: { store, left },
    });
  }
}

/** Fails if the outbox does not exist; creates neither a file nor a schema. */
export async function openOutbox(
  context: StoreContext,
  given: string | undefined,
): Promise<OutboxLedger> {
  const url = outboxUrl(context, given);
  // Opening a ledger would create the SQLite file.
  if (url.startsWith('sqlite:')) {
    const store = await openExistingStore(context, url);
    await store[Symbol.asyncDispose]();
  }
  const { openRole } = await import('../platform/engines/open-engines.ts');
  const ledger = await openRole(url, 'outbox', { migrate: 'off' });
  try {
    await ledger.paused();
    return ledger;
  } catch (error) {
    await ledger[Symbol.asyncDispose]();
    if (!isMissing(error)) throw error;
    const store = await displayUrl(context, url);
    throw new MillraceError(
      'CONFIG_INVALID',
      `there is no outbox at ${store} yet: run millrace migrate --outbox`,
      { cause: error, details: { store } },
    );
  }
}

/** PostgreSQL's codes for a missing schema and a missing table. */
function isMissing(error: unknown): boolean {
  const code = error instanceof MillraceError ? error.details['code'] : undefined;
  return code === '3F000' || code === '42P01';
}
