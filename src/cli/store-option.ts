// Which store a command works on: `--store`, the environment, or the embedded one.

import { isAbsolute, relative, resolve } from 'node:path';
import { MillraceError } from '../foundation/error.ts';
import type { OpenEventStoreOptions } from '../platform/index.ts';
import type { EventStore } from '../store/event-store.ts';
import type { Command, CommandContext } from './command.ts';

const storeDefault = 'sqlite:.millrace/events.db';
const variable = 'MILLRACE_STORE';
const outboxVariable = 'MILLRACE_OUTBOX';

export const storeOption = {
  store: { type: 'string', value: 'url', summary: `the event store (${storeDefault})` },
} as const;

export const jsonOption = {
  json: { type: 'boolean', summary: 'prints JSON, for scripts' },
} as const;

export const storeSections: NonNullable<Command['sections']> = [
  {
    title: 'Stores',
    rows: [
      ['sqlite:<file>', 'a file; nothing to install'],
      ['postgres://user:password@host/database', 'PostgreSQL; ?schema=<name> for another schema'],
      [variable, 'the environment variable that stands in for --store'],
    ],
  },
];

export const outboxSections: NonNullable<Command['sections']> = storeSections.map((section) => ({
  ...section,
  rows: [...section.rows, [outboxVariable, 'where the outbox is, if it is not beside the events']],
}));

type StoreContext = Pick<CommandContext, 'cwd' | 'env'>;

/** A file's path counts from where the command runs. */
export function storeUrl(context: StoreContext, given: string | undefined): string {
  return urlOf(context, given, [variable]);
}

/** The ledger's own, or that of the store beside which it is. */
export function outboxUrl(context: StoreContext, given: string | undefined): string {
  return urlOf(context, given, [outboxVariable, variable]);
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
  const path = /^sqlite:(?:\/\/)?([^:].*)$/i.exec(url)?.[1];
  return path === undefined || isAbsolute(path) ? url : `sqlite:${resolve(cwd, path)}`;
}

/** As the person who runs it would write it, and without its password. */
export async function shownStore({ cwd }: Pick<StoreContext, 'cwd'>, url: string): Promise<string> {
  const { redactStoreUrl } = await import('../platform/engines/store-url.ts');
  const path = /^sqlite:(.+)$/.exec(url)?.[1];
  if (path === undefined) return redactStoreUrl(url);
  const near = relative(cwd, path);
  return `sqlite:${near === '' || near.startsWith('..') ? path : near}`;
}

/** Makes the store where it is new. */
export async function openStore(
  context: StoreContext,
  given: string | undefined,
  options: OpenEventStoreOptions = {},
): Promise<EventStore> {
  const { openEventStore } = await import('../platform/engines/open-event-store.ts');
  return openEventStore(storeUrl(context, given), options);
}

/** For what makes no sense on a new store: a mistyped file is not made, nothing is migrated. */
export async function openExistingStore(
  context: StoreContext,
  given: string | undefined,
  options: OpenEventStoreOptions = {},
): Promise<EventStore> {
  const url = storeUrl(context, given);
  const { eventStoreSchema } = await import('../platform/engines/engine-schemas.ts');
  const schema = await eventStoreSchema(url);
  const { length: left } = await schema.pending();
  if (left > 0) {
    const shown = await shownStore(context, url);
    const problem =
      left === schema.steps.length
        ? `there is no event store at ${shown} yet`
        : `the schema of ${shown} lacks ${left} of its ${schema.steps.length} steps`;
    throw new MillraceError('CONFIG_INVALID', `${problem}: run millrace migrate`, {
      details: { store: shown, left },
    });
  }
  return openStore(context, given, { ...options, migrate: 'off' });
}
