// Opens the engines of a process by URL: each database once, when one of its roles is first used.

import type { EventStoreOptions } from '../../store/event-store.ts';
import type { BusOptions } from '../../bus/create-bus.ts';
import type { EngineName } from '../../contracts/engine-url.ts';
import { once } from '../../foundation/async/once.ts';
import type { OutboxLedgerOptions } from '../../outbox/create-outbox-ledger.ts';
import { lazyPersonalData } from '../../store/personal-data.ts';
import type { LeaseStore } from '../../subscriptions/subscription-storage.ts';
import type { EngineHandle, RoleMap } from './engine-roles.ts';
import { roleTable, type RoleName } from './engine-table.ts';
import { parseEngineUrl, type EngineUrl } from './engine-url.ts';
import {
  hasRole,
  lacksRole,
  missingRole,
  resolveRoles,
  type ResolvedRole,
  type ResolveOptions,
} from './resolve-roles.ts';

export interface EngineOptions extends EventStoreOptions, OutboxLedgerOptions {
  /** PostgreSQL and MongoDB: `off` leaves the schema to `millrace migrate`; a file is always migrated. */
  readonly migrate?: 'auto' | 'off' | undefined;
}

export interface EngineSet extends AsyncDisposable {
  readonly roles: readonly ResolvedRole[];
  has(role: RoleName): boolean;
  /** Whether both roles are in one database. */
  isShared(one: RoleName, other: RoleName): boolean;
  /** The handle of the engine that has the role; rejects if the role is off. */
  handleOf(role: RoleName): Promise<EngineHandle>;
  /** Undefined: the leases of the checkpoints. */
  leases(): Promise<LeaseStore | undefined>;
  /** The role itself; rejects if it is off. */
  open<Role extends RoleName>(role: Role): Promise<RoleMap[Role]>;
}

/** Opens nothing yet; invalid URLs and missing required roles are errors. */
export function createEngineSet(resolve: ResolveOptions, options: EngineOptions = {}): EngineSet {
  const roles = resolveRoles(resolve);
  for (const { role, warning } of roles) {
    if (warning !== undefined) options.observer?.log?.warn({ role }, warning);
  }
  const targets = new Map(roles.map(({ role, target }) => [role, target]));
  const opened = new AsyncDisposableStack();
  const handles = new Map<EngineUrl, () => Promise<EngineHandle>>();
  // The messages of every engine are encrypted with the keys of the one event store.
  const personalData = lazyPersonalData(async () => roleOf(await handleOf('store'), 'store'));
  for (const target of new Set([...targets.values()].filter((each) => each !== undefined))) {
    // Roles that are not needed get no tables.
    const mine = roles
      .filter(({ role }) => role === 'store' || (resolve.needs[role] ?? 'unused') !== 'unused')
      .filter((each) => each.target === target)
      .map(({ role }) => role);
    handles.set(
      target,
      once(async () => opened.use(await openEngine(target, mine, { ...options, personalData }))),
    );
  }

  async function handleOf(role: RoleName): Promise<EngineHandle> {
    const target = targets.get(role);
    const open = target === undefined ? undefined : handles.get(target);
    if (open === undefined) throw missingRole(role);
    return open();
  }

  const isShared = (one: RoleName, other: RoleName): boolean =>
    targets.get(one) !== undefined && targets.get(one) === targets.get(other);

  return {
    roles,
    has: (role) => targets.get(role) !== undefined,
    isShared,
    handleOf,
    leases: async () =>
      isShared('leases', 'subscriptions') ? undefined : (await handleOf('leases')).leases,
    open: async (role) => roleOf(await handleOf(role), role),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/**
 * Opens the engine at a URL, with all of its roles.
 *
 * @example
 * import { openEngineAt } from 'millrace/platform';
 *
 * await using db = await openEngineAt('sqlite:.millrace/events.db');
 * console.log(await db.store?.head());
 */
export async function openEngineAt(
  url: string,
  options: EngineOptions = {},
): Promise<EngineHandle> {
  const roles = Object.keys(roleTable) as RoleName[];
  return openEngine(parseEngineUrl(url, 'url'), roles, options);
}

/** One role of the engine at a URL; disposing it closes the engine. */
export async function openRole<Role extends RoleName>(
  url: string,
  role: Role,
  options: EngineOptions = {},
): Promise<RoleMap[Role] & AsyncDisposable> {
  const target = parseEngineUrl(url, role);
  if (!hasRole(target.engine, role)) throw lacksRole(role, target.engine, role);
  await using opening = new AsyncDisposableStack();
  const handle = opening.use(await openEngine(target, [role], options));
  const found = Object.create(roleOf(handle, role), {
    [Symbol.asyncDispose]: { value: () => handle[Symbol.asyncDispose]() },
  }) as RoleMap[Role] & AsyncDisposable;
  opening.move();
  return found;
}

function roleOf<Role extends RoleName>(handle: EngineHandle, role: Role): RoleMap[Role] {
  // TypeScript does not see that a generic index of both types is the same.
  const found = handle[role] as RoleMap[Role] | undefined;
  if (found === undefined) throw missingRole(role);
  return found;
}

type OpenOptions = EngineOptions & Pick<BusOptions, 'personalData'>;

type OpenEngine = (
  target: EngineUrl,
  roles: readonly RoleName[],
  options: OpenOptions,
) => Promise<EngineHandle>;

const openers: Readonly<Record<EngineName, OpenEngine>> = {
  memory: async (_target, _roles, options) =>
    (await import('../../engines/memory/index.ts')).openMemory(options),
  sqlite: async ({ connection }, _roles, options) =>
    (await import('../../engines/sqlite/index.ts')).openSqlite(connection, options),
  async postgres({ connection, schema }, roles, options) {
    const { openPostgres } = await import('../../engines/postgres/index.ts');
    const isOutboxOnly = roles.every((role) => role === 'outbox');
    const migrated = [
      ...(isOutboxOnly ? [] : (['store'] as const)),
      ...(roles.includes('outbox') ? (['outbox'] as const) : []),
    ];
    return openPostgres(connection, { ...options, schema, roles: migrated });
  },
  mongodb: async ({ connection }, _roles, options) =>
    (await import('../../engines/mongodb/index.ts')).openMongo(connection, options),
  kurrentdb: async ({ connection }, _roles, options) =>
    (await import('../../engines/kurrentdb/index.ts')).openKurrent(connection, options),
  redis: async ({ connection }, _roles, options) =>
    (await import('../../engines/redis/index.ts')).openRedis(connection, options),
  nats: async ({ connection }, _roles, options) =>
    (await import('../../engines/nats/index.ts')).openNats(connection, options),
};

async function openEngine(
  target: EngineUrl,
  roles: readonly RoleName[],
  options: OpenOptions,
): Promise<EngineHandle> {
  return openers[target.engine](target, roles, options);
}
