// The roles of a platform over the engines of its URLs. Roles that every platform uses are opened at once, the others on
// first use.

import type { CommandRoles } from '../../aggregates/create-command-handler.ts';
import type { Bus } from '../../bus/bus.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { ProjectionRoles } from '../../projections/start-projection.ts';
import type { SagaIndex } from '../../reactors/saga-index.ts';
import type { TaskEngine } from '../../tasks/task-engine.ts';
import type { TraceIndex } from '../../traces/trace-index.ts';
import type { KeyStore } from '../../work/key-store.ts';
import type { WorkQueue } from '../../work/work-queue.ts';
import type { RoleName } from './engine-table.ts';
import { createEngineSet, type EngineOptions } from './open-engines.ts';
import { missingRole, type ResolvedRole, type ResolveOptions } from './resolve-roles.ts';

export interface PlatformEngines extends AsyncDisposable, ProjectionRoles, CommandRoles {
  readonly sagas: SagaIndex;
  /** Undefined: no engine has a trace index. */
  readonly traces: TraceIndex | undefined;
  /** Undefined: no engine has an outbox. */
  readonly outbox: OutboxLedger | undefined;
  /** Undefined: the dispatcher sends the messages itself. */
  readonly outboxQueue: WorkQueue | undefined;
  /** Opened on first use; always the same object. */
  readonly bus: () => Promise<Bus>;
  readonly tasks: () => Promise<TaskEngine>;
  /** The bus in the engine of the jobs, which has their streams. */
  readonly taskBus: () => Promise<Bus>;
  readonly keys: () => Promise<KeyStore>;
  readonly queue: () => Promise<WorkQueue>;
  readonly roles: readonly ResolvedRole[];
  has(role: RoleName): boolean;
}

export async function openPlatformEngines(
  resolve: ResolveOptions,
  options: EngineOptions = {},
): Promise<PlatformEngines> {
  await using opening = new AsyncDisposableStack();
  const set = opening.use(createEngineSet(resolve, options));
  const ifPresent = async <Role extends RoleName>(role: Role) =>
    set.has(role) ? await set.open(role) : undefined;
  const { readModelVersions } = await set.handleOf('subscriptions');
  const { keyClaims } = set.has('snapshots') ? await set.handleOf('snapshots') : {};
  if (readModelVersions === undefined)
    throw new TypeError('an engine with checkpoints has versions');
  const [store, subscriptions, snapshots, readModels, sagas, traces, outbox, leases, outboxQueue] =
    await Promise.all([
      set.open('store'),
      set.open('subscriptions'),
      ifPresent('snapshots'),
      set.open('readModels'),
      set.open('sagas'),
      ifPresent('traces'),
      ifPresent('outbox'),
      set.leases(),
      // A queue that was not configured is for modules only: the dispatcher sends the messages itself.
      resolve.urls.queue === undefined ? undefined : set.open('queue'),
    ]);
  const opened = opening.move();
  return {
    store,
    subscriptions,
    snapshots,
    keyClaims,
    readModels,
    readModelVersions,
    sagas,
    traces,
    outbox,
    leases,
    outboxQueue,
    bus: () => set.open('bus'),
    tasks: () => set.open('tasks'),
    async taskBus() {
      const { bus } = await set.handleOf('tasks');
      if (bus === undefined) throw missingRole('bus');
      return bus;
    },
    keys: () => set.open('keys'),
    queue: () => set.open('queue'),
    roles: set.roles,
    has: (role) => set.has(role),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
