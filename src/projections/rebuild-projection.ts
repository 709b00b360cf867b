// Builds a version of a read model beside the one that is asked, at full speed. How far it is stands in the
// projection's own checkpoint, so that a rebuild that was killed goes on, and whoever runs the projection
// afterwards goes on from there. Nothing but the projection's own handlers runs.

import { randomUUID } from 'node:crypto';
import { aborted } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { startPosition, toPosition, toSequence, type Position } from '../store/position.ts';
import { createSubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import type { Fence } from '../subscriptions/subscription-storage.ts';
import { familyOf, hostOf, type HostOptions, type ProjectionStore } from './projection-host.ts';
import { projectionLimits as limits } from './limits.ts';
import type { Projection } from './projection.ts';
import { createPageProjector } from './run/rebuild-pages.ts';
import type { ReadModelVersion } from './read-model-versions.ts';
import { createProgressMeter, type RebuildProgress } from './rules/rebuild-progress.ts';
import { takeAllShards, type ShardLeases } from './run/shard-leases.ts';
import { checkVersion, projectionSubscription } from './start-projection.ts';

export interface RebuildOptions extends HostOptions {
  readonly signal?: AbortSignal | undefined;
  /** Told after every page, and at the end. */
  readonly onProgress?: ((progress: RebuildProgress) => void) | undefined;
  readonly pageSize?: number | undefined;
  /** Of the process; after it another one may take over. Default: 10 s. */
  readonly leaseMs?: number | undefined;
}

export interface RebuildResult {
  /** Folded by this run. */
  readonly events: number;
  readonly position: Position;
  /** What could not be handled waits as a dead letter, as always. */
  readonly deadLetters: number;
}

export function checkRebuildable(name: string, version: ReadModelVersion): void {
  checkVersion(name, version);
  if (!version.active || version.status !== 'ready') return;
  throw new MillraceError(
    'PROJECTION_INVALID',
    `${name} is being asked: build a new version beside it`,
    { details: { name, family: version.family, version: version.version } },
  );
}

/**
 * Builds all documents of a version that is not asked yet, until it has caught up; `switchProjection`
 * lets queries ask it. Called again, it goes on where it was.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { projection, readModel, rebuildProjection, switchProjection } from 'millrace/projections';
 *
 * const store = memoryEventStore();
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v2',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 2 }),
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * await rebuildProjection(store, accounts, {
 *   onProgress: ({ done, eventsPerSecond }) => console.log(done, eventsPerSecond),
 * });
 * await switchProjection(store, accounts);
 */
export async function rebuildProjection<Document extends object>(
  store: ProjectionStore,
  projection: Projection<Document>,
  options: RebuildOptions = {},
): Promise<RebuildResult> {
  const { readModels, storage, versions, clock } = hostOf(store, options);
  const { signal, onProgress, pageSize = limits.rebuildPage, leaseMs = limits.leaseMs } = options;
  const { name, readModel, filter } = projection;
  const key = { family: familyOf(readModel), version: readModel.version };
  const target = await store.head();
  const version = await versions.declare({ ...key, projection: name, target }, clock.now());
  checkRebuildable(name, version);
  const subscription = projectionSubscription(projection, readModels);
  const { shards } = await storage.checkpoints.open(name, subscription.shards);
  const meter = createProgressMeter();
  let events = 0;
  let position: Position = startPosition;
  let head = target;

  const tell = (): void => {
    onProgress?.(meter.at({ atMs: clock.now(), events, position, head }));
  };

  const fast = await readAllPages();
  if (fast === 'trouble') await readOn();
  await versions.setStatus(key, { from: ['building'], to: 'ready' }, clock.now());
  head = position > head ? position : head;
  tell();
  const deadLetters = await storage.deadLetters.count({ handler: name, status: 'pending' });
  return { events, position, deadLetters };

  /** `trouble`: something needs the patience of the ordinary way, which retries, parks and tells. */
  async function readAllPages(): Promise<'done' | 'trouble'> {
    const owner = `rebuild-${randomUUID()}`;
    const lease = { subscription: name, shards, owner, leaseMs, clock, signal };
    await using leases = await takeAllShards(storage.leases, lease);
    const began = await progressOf(leases.fences);
    if (began === undefined) return 'trouble';
    position = began;
    const projector = createPageProjector(readModels, projection, {
      documentsMax: limits.rebuildDocuments,
      charsMax: limits.rebuildChars,
    });
    tell();
    try {
      await walk(leases, projector);
      return 'done';
    } catch (error) {
      // The page before is still being written; what became of it does not change the reason.
      await projector.finish().catch(() => undefined);
      if (signal?.aborted === true) throw aborted(signal);
      if (hasCode(error, 'LEASE_LOST') || hasCode(error, 'STORE_CLOSED')) throw error;
      options.observer?.log?.warn({ sub: name, err: error }, 'rebuild goes on one by one');
      return 'trouble';
    }
  }

  async function walk(
    leases: ShardLeases,
    projector: ReturnType<typeof createPageProjector>,
  ): Promise<void> {
    let read = position;
    do {
      head = await store.head();
      const pages = store.readAll({
        after: read,
        filter,
        pageSize,
        ...(signal === undefined ? {} : { signal }),
      });
      for await (const page of pages.pages()) {
        const last = page.at(-1)?.position;
        if (last === undefined) continue;
        read = last;
        await leases.keep();
        await projector.project(page, () => written(leases, page.length, last));
      }
      await projector.finish();
      // Whatever matched no filter is done as well.
      if (head > read) {
        read = head;
        await written(leases, 0, head);
      }
    } while (toSequence(await store.head()) - toSequence(read) > pageSize);
  }

  async function written(leases: ShardLeases, count: number, upTo: Position): Promise<void> {
    for (const fence of leases.fences) await storage.checkpoints.save(fence, upTo);
    events += count;
    position = upTo;
    tell();
  }

  /** Undefined: something waits there that only the ordinary way knows how to handle. */
  async function progressOf(fences: readonly Fence[]): Promise<Position | undefined> {
    const all = await Promise.all(fences.map((fence) => storage.checkpoints.load(fence)));
    if (all.some(({ blocked, done }) => blocked.length > 0 || done.length > 0)) return undefined;
    const positions = all.map((each) => each.position ?? startPosition);
    return positions.toSorted()[0] ?? toPosition(0);
  }

  async function readOn(): Promise<void> {
    await using runner = createSubscriptionRunner(store, subscription, {
      storage,
      clock,
      leaseMs,
      checkpointMs: limits.rebuildCheckpointMs,
      observer: options.observer,
    });
    await runner.start();
    await runner.whenCaughtUp(signal);
    const before = position;
    position = (await runner.lag()).position;
    position = position < before ? before : position;
  }
}
