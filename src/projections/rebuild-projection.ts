// Builds a version of a read model at full speed while another version is active. The progress is the
// projection's own checkpoint, so a killed rebuild resumes, and the running projection later continues from
// it. Only the handlers of the projection run.

import { randomUUID } from 'node:crypto';
import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { subjectForgottenType, withoutForgottenPrefix } from '../store/erasure.ts';
import { eraseDocuments } from './run/erase-documents.ts';
import { startPosition, type Position } from '../store/position.ts';
import { resolveTenants, type ResolveTenant } from '../store/stream-owners.ts';
import { createSubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import type { Fence } from '../subscriptions/subscription-storage.ts';
import { storageOf } from '../subscriptions/with-leases.ts';
import { projectionLimits as limits, type Projection } from './projection.ts';
import { familyOf, type ReadModelVersion } from './read-model-versions.ts';
import { createProgressMeter, type RebuildProgress } from './rules/rebuild-progress.ts';
import { createPageProjector } from './run/rebuild-pages.ts';
import { acquireAllShards, type ShardLeases } from './run/shard-leases.ts';
import {
  checkRoles,
  checkVersion,
  projectionSubscription,
  type ProjectionRoles,
} from './start-projection.ts';

export interface RebuildOptions {
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called after every page and once after the last page. */
  readonly onProgress?: ((progress: RebuildProgress) => void) | undefined;
  readonly pageSize?: number | undefined;
  /** Time after which another process can take over from a dead one. Default: 10 s. */
  readonly leaseMs?: number | undefined;
  readonly resolveTenant?: ResolveTenant | undefined;
}

export interface RebuildResult {
  /** Number of events that this run folded. */
  readonly events: number;
  readonly position: Position;
  /** Number of pending dead letters of the projection. */
  readonly deadLetters: number;
}

export function checkRebuildable(name: string, version: ReadModelVersion): void {
  checkVersion(name, version);
  if (!version.active || version.status !== 'ready') return;
  throw new MillraceError('PROJECTION_INVALID', `${name} is active: build a new version instead`, {
    details: { name, family: version.family, version: version.version },
  });
}

/**
 * Builds all documents of an inactive version until it has caught up; `switchProjection` then activates it.
 * A repeated call resumes the rebuild.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { projection, readModel, rebuildProjection, switchProjection } from 'millrace/projections';
 *
 * await using db = openMemory();
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v2',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 2 }),
 *   filter: { category: 'banking.account.v1' },
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * await rebuildProjection(db, accounts, {
 *   onProgress: ({ done, eventsPerSecond }) => console.log(done, eventsPerSecond),
 * });
 * await switchProjection(db, accounts);
 */
export async function rebuildProjection<Document extends object>(
  roles: ProjectionRoles,
  projection: Projection<Document>,
  options: RebuildOptions = {},
): Promise<RebuildResult> {
  const { store, readModels, readModelVersions: versions } = checkRoles(roles);
  const storage = storageOf(roles);
  const { clock = systemClock, resolveTenant: resolve } = options;
  const { signal, onProgress, pageSize = limits.rebuildPage, leaseMs = limits.leaseMs } = options;
  const { name, readModel, filter } = projection;
  const key = { family: familyOf(readModel), version: readModel.version };
  const target = await store.head();
  const version = await versions.declare({ ...key, projection: name, target }, clock.now());
  checkRebuildable(name, version);
  const subscription = projectionSubscription(projection, roles);
  const { shards } = await storage.checkpoints.open(name, subscription.shards);
  const meter = createProgressMeter();
  let events = 0;
  let position: Position = startPosition;
  let head = target;

  const report = (): void => {
    onProgress?.(meter.at({ atMs: clock.now(), events, position, head }));
  };

  const fast = await readAllPages();
  if (fast === 'failed') await runSubscription();
  await versions.setStatus(key, { from: ['building'], to: 'ready' }, clock.now());
  head = position > head ? position : head;
  report();
  const deadLetters = await storage.deadLetters.count({ handler: name, status: 'pending' });
  return { events, position, deadLetters };

  /** `failed`: the subscription must continue, because it can retry, park and dead-letter events. */
  async function readAllPages(): Promise<'done' | 'failed'> {
    const owner = `rebuild-${randomUUID()}`;
    const lease = { subscription: name, shards, owner, leaseMs, clock, signal };
    await using leases = await acquireAllShards(storage.leases, lease);
    const start = await progressOf(leases.fences);
    if (start === undefined) return 'failed';
    position = start;
    const projector = createPageProjector(readModels, projection, {
      documentsMax: limits.rebuildDocuments,
      charsMax: limits.rebuildChars,
    });
    report();
    try {
      await projectPages(leases, projector);
      await eraseForgotten();
      return 'done';
    } catch (error) {
      // Wait for the write of the previous page; its result does not change the error.
      await projector.finish().catch(() => undefined);
      if (signal?.aborted === true) throw aborted(signal);
      if (hasCode(error, 'LEASE_LOST') || hasCode(error, 'STORE_CLOSED')) throw error;
      options.observer?.log?.warn(
        { sub: name, err: error },
        'fast rebuild failed; continuing event by event',
      );
      return 'failed';
    }
  }

  async function projectPages(
    leases: ShardLeases,
    projector: ReturnType<typeof createPageProjector>,
  ): Promise<void> {
    let read = position;
    let count = 0;
    do {
      count = 0;
      head = await store.head();
      const reader = store.readAll({ after: read, filter, pageSize, signal });
      for await (const page of reader.pages()) {
        const last = page.at(-1)?.position;
        if (last === undefined) continue;
        read = last;
        count += page.length;
        await leases.renewIfDue();
        const resolved = await resolveTenants(page, resolve);
        await projector.project(resolved, () => onWritten(leases, page.length, last));
      }
      await projector.finish();
      // Events that do not match the filter need no work. Only the reader knows up to where it has checked them.
      if (reader.position > read) {
        read = reader.position;
        await onWritten(leases, 0, read);
      }
    } while (count > pageSize);
  }

  /** A page may have been read before a person was forgotten, and written after it. */
  async function eraseForgotten(): Promise<void> {
    const erasures = { types: [subjectForgottenType], system: true };
    const streams = new Set<string>();
    for await (const { stream } of store.readAll({ filter: erasures, signal })) {
      streams.add(withoutForgottenPrefix(stream));
    }
    for (const stream of streams) await eraseDocuments(roles, projection, stream);
  }

  async function onWritten(leases: ShardLeases, count: number, upTo: Position): Promise<void> {
    for (const fence of leases.fences) await storage.checkpoints.save(fence, upTo);
    events += count;
    position = upTo;
    report();
  }

  /** Undefined if events wait or are processed above a checkpoint, which only the subscription handles. */
  async function progressOf(fences: readonly Fence[]): Promise<Position | undefined> {
    const all = await Promise.all(fences.map((fence) => storage.checkpoints.load(fence)));
    if (all.some(({ blocked, done }) => blocked.length > 0 || done.length > 0)) return undefined;
    const positions = all.map((each) => each.position ?? startPosition);
    return positions.toSorted()[0] ?? startPosition;
  }

  async function runSubscription(): Promise<void> {
    await using runner = createSubscriptionRunner(roles, subscription, {
      clock,
      leaseMs,
      checkpointMs: limits.rebuildCheckpointMs,
      observer: options.observer,
      resolveTenant: resolve,
    });
    await runner.start();
    await runner.whenCaughtUp(signal);
    const before = position;
    position = (await runner.lag()).position;
    position = position < before ? before : position;
  }
}
