// The modules' projections as one process runs them, waits for them, and builds them anew.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Projection } from '../projections/projection.ts';
import { checkRebuildable, rebuildProjection } from '../projections/rebuild-projection.ts';
import { startProjection, type ProjectionRunner } from '../projections/start-projection.ts';
import { waitForProjection } from '../projections/wait-for-projection.ts';
import type { WaitOptions } from '../projections/wait-with-timeout.ts';
import type { Position } from '../store/position.ts';
import type { PlatformEngines } from './engines/platform-engines.ts';
import { createProjectionRebuilds, type ProjectionRebuilds } from './projection-rebuilds.ts';

export interface PlatformProjections {
  start(projection: Projection): Promise<AsyncDisposable>;
  readonly rebuilds: ProjectionRebuilds;
  readonly waitFor: (
    projection: Projection,
    position: Position,
    options?: WaitOptions,
  ) => Promise<void>;
}

export interface RunningOptions {
  readonly storage: PlatformEngines['storage'];
  /** The same, with the leases that all processes share. */
  readonly shared: PlatformEngines['storage'];
  readonly clock: Clock;
  readonly observer: Observer;
  readonly leases?: NonNullable<PlatformEngines['leases']>;
  readonly leaseMs?: number;
  readonly drainMs?: number;
}

export function runProjections(
  { store, readModels, readModelVersions }: PlatformEngines,
  projections: readonly Projection[],
  { shared, ...running }: RunningOptions,
): PlatformProjections {
  const projecting = { ...running, readModels, versions: readModelVersions };
  /** Those that this process runs know at once how far they are; others write it down every second. */
  const runners = new Map<string, ProjectionRunner>();
  /** What somebody started and has not ended, whether it runs or rests for a rebuild. */
  const wanted = new Set<string>();

  const run = async (each: Projection): Promise<void> => {
    runners.set(each.name, await startProjection(store, each, projecting));
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
        const known = await readModelVersions.list(`${bc}.${aggregate}`);
        const own = known.find((each) => each.version === version);
        if (own !== undefined) checkRebuildable(name, own);
      },
      async build(each, building) {
        // It holds the leases that the rebuild needs, until the documents are there.
        await rest(each);
        try {
          return await rebuildProjection(store, each, {
            ...projecting,
            ...building,
            storage: shared,
          });
        } finally {
          if (wanted.has(each.name)) await run(each);
        }
      },
    }),
    waitFor(projection, position, options) {
      const here = runners.get(projection.name);
      if (here !== undefined) return here.waitFor(position, options);
      return waitForProjection(store, projection, position, { ...options, ...projecting });
    },
  };
}
