// Runs, awaits and rebuilds the projections of the modules.

import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { activeDocuments } from '../projections/active-documents.ts';
import type { DocumentQueries } from '../projections/documents.ts';
import type { Projection } from '../projections/projection.ts';
import type { ModelKey } from '../projections/read-model-store.ts';
import { familyOf } from '../projections/read-model-versions.ts';
import { checkRebuildable, rebuildProjection } from '../projections/rebuild-projection.ts';
import {
  startProjection,
  waitForProjection,
  type ProjectionRunner,
} from '../projections/start-projection.ts';
import type { WaitOptions } from '../projections/run/wait-with-timeout.ts';
import type { Position } from '../store/position.ts';
import type { SubscriptionOptions } from '../subscriptions/subscription-runner.ts';
import type { PlatformEngines } from './engines/platform-engines.ts';
import { createProjectionRebuilds, type ProjectionRebuilds } from './projection-rebuilds.ts';

export type DocumentFamily = Pick<ModelKey, 'bc' | 'aggregate'>;

/** The documents of any read model of the platform, in its active version. */
export type ReadDocuments = (family: DocumentFamily) => DocumentQueries<object>;

/** Waits until the projection, in any process, has processed all events up to this position. */
export type WaitForProjection = (
  projection: Projection,
  position: Position,
  options?: WaitOptions,
) => Promise<void>;

export interface PlatformProjections {
  start(projection: Projection): Promise<AsyncDisposable>;
  readonly rebuilds: ProjectionRebuilds;
  readonly waitFor: WaitForProjection;
}

interface RunningOptions extends Pick<
  SubscriptionOptions,
  'drainMs' | 'leaseMs' | 'resolveTenant'
> {
  readonly clock: Clock;
  readonly observer: Observer;
}

export function runProjections(
  engines: PlatformEngines,
  projections: readonly Projection[],
  running: RunningOptions,
): PlatformProjections {
  /** Runners of this process know their position immediately; others store it every second. */
  const runners = new Map<string, ProjectionRunner>();
  /** Projections that were started and not stopped, including those paused for a rebuild. */
  const wanted = new Set<string>();

  const run = async (each: Projection): Promise<void> => {
    const { name, readModel } = each;
    const family = familyOf(readModel);
    const { version } = readModel;
    const known = await engines.readModelVersions.list(family);
    const own = known.find((declared) => declared.version === version);
    if (own?.status === 'retiring' || own?.status === 'retired') {
      // Old and new code run together during a deployment, so a process may still define the version.
      const { status } = own;
      running.observer.log?.warn(
        { sub: name, family, version, status },
        'retired projection not started',
      );
      return;
    }
    runners.set(name, await startProjection(engines, each, running));
  };
  const rest = async ({ name }: Projection): Promise<void> => {
    const runner = runners.get(name);
    runners.delete(name);
    await runner?.stop();
  };

  return {
    async start(each) {
      wanted.add(each.name);
      await run(each);
      return {
        async [Symbol.asyncDispose]() {
          wanted.delete(each.name);
          await rest(each);
        },
      };
    },
    rebuilds: createProjectionRebuilds({
      projections,
      clock: running.clock,
      async check({ name, readModel: { bc, aggregate, version } }) {
        const known = await engines.readModelVersions.list(familyOf({ bc, aggregate }));
        const own = known.find((each) => each.version === version);
        if (own !== undefined) checkRebuildable(name, own);
      },
      async build(each, building) {
        // The runner holds the leases that the rebuild needs.
        await rest(each);
        try {
          return await rebuildProjection(engines, each, { ...running, ...building });
        } finally {
          if (wanted.has(each.name)) await run(each);
        }
      },
    }),
    waitFor(projection, position, options) {
      const here = runners.get(projection.name);
      if (here !== undefined) return here.waitFor(position, options);
      return waitForProjection(engines, projection, position, {
        ...options,
        clock: running.clock,
      });
    },
  };
}

/** How often the active version of a read model is read: reading it for each query would double its cost. */
const versionRefreshMs = 250;

export function readDocuments(
  engines: PlatformEngines,
  projections: readonly Projection[],
  clock: Clock,
): ReadDocuments {
  const models = projections.map(({ readModel }) => readModel);
  const families = Map.groupBy(models, ({ bc, aggregate }) => `${bc}.${aggregate}`);
  const queries = new Map(
    [...families].map(([family, versions]) => [
      family,
      activeDocuments(engines, versions, { clock, refreshMs: versionRefreshMs }),
    ]),
  );
  return ({ bc, aggregate }) => {
    const found = queries.get(`${bc}.${aggregate}`);
    if (found !== undefined) return found;
    const known = [...queries.keys()].join(', ');
    throw new MillraceError(
      'READ_MODEL_UNKNOWN',
      `unknown read model '${bc}.${aggregate}'; known: ${known}`,
      { details: { bc, aggregate } },
    );
  };
}
