// Switches queries to a new version of a read model and removes the documents of an old version.

import { randomUUID } from 'node:crypto';
import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { subscriptionAdmin, type SubscriptionLag } from '../subscriptions/subscription-admin.ts';
import { storageOf } from '../subscriptions/with-leases.ts';
import { projectionLimits as limits } from './projection.ts';
import { readModelLimits } from './read-model.ts';
import { checkRoles, type ProjectionRoles } from './start-projection.ts';
import type { ModelKey } from './read-model-store.ts';
import { familyOf, type ReadModelVersion, type ReadModelVersions } from './read-model-versions.ts';
import { acquireAllShards } from './run/shard-leases.ts';

/** Name and read model of a projection whose code may no longer exist. */
export interface ProjectionVersion {
  readonly name: string;
  readonly readModel: ModelKey;
}

export interface SwitchOptions {
  readonly clock?: Clock | undefined;
}

export interface RetireOptions extends SwitchOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after every step with the number of documents removed so far. */
  readonly onProgress?: ((removed: number) => void) | undefined;
  readonly leaseMs?: number | undefined;
}

/**
 * Atomically switches all queries to this version, which must have caught up once.
 *
 * @example
 * import { switchProjection, type ProjectionRoles, type ProjectionVersion } from 'millrace/projections';
 *
 * const goLive = (db: ProjectionRoles, accounts: ProjectionVersion) => switchProjection(db, accounts);
 */
export async function switchProjection(
  roles: Pick<ProjectionRoles, 'readModels' | 'readModelVersions'>,
  projection: ProjectionVersion,
  { clock = systemClock }: SwitchOptions = {},
): Promise<void> {
  const { readModelVersions: versions } = checkRoles(roles);
  const version = await knownVersion(versions, projection);
  const { family } = version;
  if (await versions.activate({ family, version: version.version }, clock.now())) return;
  throw new MillraceError(
    'PROJECTION_INVALID',
    `${projection.name} is ${version.status}: it must catch up before the switch`,
    {
      details: { name: projection.name, family, version: version.version, status: version.status },
    },
  );
}

/**
 * Stops an inactive version and removes its documents step by step. A repeated call resumes the removal.
 * Returns the number of documents removed by this call.
 *
 * @example
 * import { retireProjection, type ProjectionRoles, type ProjectionVersion } from 'millrace/projections';
 *
 * const cleanUp = (db: ProjectionRoles, old: ProjectionVersion) => retireProjection(db, old);
 */
export async function retireProjection(
  roles: ProjectionRoles,
  projection: ProjectionVersion,
  options: RetireOptions = {},
): Promise<number> {
  const { readModels, readModelVersions: versions } = checkRoles(roles);
  const storage = storageOf(roles);
  const { signal, leaseMs = limits.leaseMs, clock = systemClock } = options;
  const { name, readModel } = projection;
  const version = await knownVersion(versions, projection);
  const key = { family: version.family, version: version.version };
  if (version.status === 'retired') return 0;
  if (version.active) {
    throw new MillraceError(
      'PROJECTION_INVALID',
      `${name} is active: switch to another version first`,
      { details: { name, ...key } },
    );
  }
  const from = ['building', 'ready', 'rebuilding', 'retiring'] as const;
  await versions.setStatus(key, { from, to: 'retiring' }, clock.now());
  // Register a version that never ran, so that it can be paused.
  const { shards } = await storage.checkpoints.open(name, 1);
  await subscriptionAdmin(roles, { clock }).pause(name);
  // A process that still runs it releases its shards when it sees the pause.
  const owner = `retire-${randomUUID()}`;
  await using leases = await acquireAllShards(storage.leases, {
    subscription: name,
    shards,
    owner,
    leaseMs,
    clock,
    signal,
  });
  let removed = 0;
  for (;;) {
    if (signal?.aborted === true) throw aborted(signal);
    await leases.renewIfDue();
    const step = await readModels.clear(readModel, readModelLimits.clearStep);
    if (step === 0) break;
    removed += step;
    options.onProgress?.(removed);
  }
  await versions.setStatus(key, { from: ['retiring'], to: 'retired' }, clock.now());
  return removed;
}

export interface ProjectionStatus extends ReadModelVersion {
  /** Distance to the head, in `unit`; undefined before the first start. */
  readonly behind: number | undefined;
  readonly unit: SubscriptionLag['unit'] | undefined;
  readonly seconds: number | undefined;
  readonly paused: boolean;
  readonly deadLetters: number;
}

/**
 * The status of all versions of all read models.
 *
 * @example
 * import { projectionStatus, type ProjectionRoles } from 'millrace/projections';
 *
 * const show = async (db: ProjectionRoles) => console.table(await projectionStatus(db));
 */
export async function projectionStatus(
  roles: ProjectionRoles,
  { clock = systemClock }: SwitchOptions = {},
): Promise<readonly ProjectionStatus[]> {
  const { readModelVersions: versions } = checkRoles(roles);
  const storage = storageOf(roles);
  const admin = subscriptionAdmin(roles, { clock });
  const found: ProjectionStatus[] = [];
  for (const version of await versions.list()) {
    const { projection } = version;
    const state = await storage.checkpoints.get(projection);
    const lag = state === undefined ? undefined : await admin.lag(projection);
    found.push({
      ...version,
      behind: lag?.behind,
      unit: lag?.unit,
      seconds: lag?.seconds,
      paused: state?.paused ?? false,
      deadLetters: await storage.deadLetters.count({ handler: projection, status: 'pending' }),
    });
  }
  return found;
}

async function knownVersion(
  versions: ReadModelVersions,
  { name, readModel }: ProjectionVersion,
): Promise<ReadModelVersion> {
  const family = familyOf(readModel);
  const list = await versions.list(family);
  const version = list.find((each) => each.version === readModel.version);
  if (version !== undefined && version.projection === name) return version;
  throw new MillraceError(
    'PROJECTION_UNKNOWN',
    `unknown projection version '${name}': start the projection of ${family} v${readModel.version} first`,
    { details: { name, family, version: readModel.version } },
  );
}

/** The stored version of a projection name, for programs without the code of the projection. */
export async function namedVersion(
  versions: Pick<ReadModelVersions, 'list'> | undefined,
  name: string,
): Promise<ProjectionVersion> {
  const known = (await versions?.list())?.find(({ projection }) => projection === name);
  if (known === undefined) {
    throw new MillraceError(
      'PROJECTION_UNKNOWN',
      `unknown projection '${name}': start it on this store first`,
      {
        details: { name },
      },
    );
  }
  const [bc = '', aggregate = ''] = known.family.split('.');
  return { name, readModel: { bc, aggregate, version: known.version } };
}
