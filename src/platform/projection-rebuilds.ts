// Rebuilds in a running process, one at a time for each projection. The checkpoint is durable, so another rebuild
// continues an interrupted one.

import { aborted, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Projection } from '../projections/projection.ts';
import type { RebuildResult } from '../projections/rebuild-projection.ts';
import type { RebuildProgress } from '../projections/rules/rebuild-progress.ts';

/** The state of a rebuild of this process; lost with the process. */
export interface ProjectionRebuild {
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly startedAt: string;
  readonly endedAt?: string;
  /** Undefined until this process owns the leases of the projection. */
  readonly progress?: RebuildProgress;
  /** The error code of a failed rebuild. */
  readonly error?: string;
}

export interface ProjectionRebuilds extends AsyncDisposable {
  /** Resolves when the rebuild has started; `ended` rejects if it failed or was cancelled. */
  start(name: string): Promise<{ readonly ended: Promise<RebuildResult> }>;
  get(name: string): ProjectionRebuild | undefined;
  /** Resolves when the rebuild has stopped. False: no rebuild is running. */
  cancel(name: string): Promise<boolean>;
}

export interface RebuildSources {
  readonly projections: readonly Projection[];
  readonly clock: Clock;
  /** Throws if the projection cannot be rebuilt. */
  readonly check: (projection: Projection) => Promise<void>;
  readonly build: (
    projection: Projection,
    options: {
      readonly signal: AbortSignal;
      readonly onProgress: (progress: RebuildProgress) => void;
    },
  ) => Promise<RebuildResult>;
}

export function createProjectionRebuilds(sources: RebuildSources): ProjectionRebuilds {
  const { projections, clock, check, build } = sources;
  const rebuilds = new Map<string, ProjectionRebuild>();
  const running = new Map<
    string,
    { readonly ending: AbortController; ended: Promise<RebuildResult> | undefined }
  >();
  const now = (): string => new Date(clock.now()).toISOString();
  const update = (name: string, news: Partial<ProjectionRebuild>): void => {
    const before = rebuilds.get(name) ?? { state: 'running', startedAt: now() };
    rebuilds.set(name, { ...before, ...news });
  };

  async function run(projection: Projection, { signal }: AbortController): Promise<RebuildResult> {
    const { name } = projection;
    try {
      const onProgress = (progress: RebuildProgress): void => update(name, { progress });
      const result = await build(projection, { signal, onProgress });
      update(name, { state: 'done', endedAt: now() });
      return result;
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : 'INTERNAL';
      const isCancelled = signal.aborted && hasCode(error, 'ABORTED');
      const outcome = isCancelled
        ? ({ state: 'cancelled' } as const)
        : ({ state: 'failed', error: code } as const);
      update(name, { ...outcome, endedAt: now() });
      throw error;
    } finally {
      running.delete(name);
    }
  }

  const cancel = async (name: string): Promise<boolean> => {
    const rebuild = running.get(name);
    if (rebuild === undefined) return false;
    rebuild.ending.abort();
    // The caller of `start` gets the error.
    await rebuild.ended?.catch(() => undefined);
    return true;
  };

  return {
    async start(name) {
      const projection = projections.find((each) => each.name === name);
      if (projection === undefined) {
        throw new MillraceError(
          'PROJECTION_UNKNOWN',
          `unknown projection '${name}': a rebuild needs its code, and no module of this process defines it`,
          { details: { name } },
        );
      }
      if (running.has(name)) {
        throw new MillraceError('PROJECTION_BUSY', `${name} is already being rebuilt`, {
          details: { name },
        });
      }
      const rebuild: NonNullable<ReturnType<typeof running.get>> = {
        ending: new AbortController(),
        ended: undefined,
      };
      running.set(name, rebuild);
      try {
        await check(projection);
        if (rebuild.ending.signal.aborted) throw aborted(rebuild.ending.signal);
      } catch (error) {
        running.delete(name);
        throw error;
      }
      rebuilds.set(name, { state: 'running', startedAt: now() });
      const ended = run(projection, rebuild.ending);
      rebuild.ended = ended;
      return { ended };
    },
    get: (name) => rebuilds.get(name),
    cancel,
    async [Symbol.asyncDispose]() {
      await Promise.all([...running.keys()].map(cancel));
    },
  };
}
