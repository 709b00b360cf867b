// The whole flow on one page: engines by URL, the modules, and the parts that this process runs.

import type { Bus } from '../bus/bus.ts';
import { startBusSweeper } from '../bus/bus-sweeper.ts';
import type { RetentionRule } from '../bus/retention.ts';
import type { Delivery } from '../delivery/create-delivery.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { createLifecycle, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver } from '../foundation/observer.ts';
import {
  createOutboxDispatcher,
  type OutboxDispatcherOptions,
} from '../outbox/outbox-dispatcher.ts';
import { createQueueDispatcher } from '../outbox/queue-dispatcher.ts';
import { createQueueWorker } from '../outbox/queue-worker.ts';
import { startOutboxProjector } from '../outbox/outbox-projector.ts';
import { restoreProjection } from '../projections/restore-projection.ts';
import { sagaAdmin, type SagaAdmin } from '../reactors/saga-admin.ts';
import type { SagaName } from '../reactors/saga-fact.ts';
import { startReactor } from '../reactors/start-reactor.ts';
import { startSaga } from '../reactors/saga-runner.ts';
import {
  createStreamOwner,
  createTenantResolver,
  type StreamOwner,
} from '../store/stream-owners.ts';
import { createFailingShards, type FailingShard } from '../subscriptions/run/failing-shards.ts';
import { subscriptionLimits } from '../subscriptions/subscription-limits.ts';
import { storageOf } from '../subscriptions/with-leases.ts';
import { startSubscription } from '../subscriptions/subscription-runner.ts';
import { subscriptionAdmin, type SubscriptionAdmin } from '../subscriptions/subscription-admin.ts';
import type { TypeCount } from '../tasks/task-engine.ts';
import type { Tasks } from '../tasks/tasks.ts';
import type { TaskType } from '../tasks/task-type.ts';
import type { Traces } from '../traces/create-traces.ts';
import { openColdStorage, type ArchiveKeys } from './engines/open-cold-storage.ts';
import { openTokens, type Tokens } from './tokens/open-tokens.ts';
import { readOutboxEnvironment, type OutboxSettings } from './config/outbox-environment.ts';
import { sendingBy, withSettings } from './outbox-settings.ts';
import { bindCommands, type HandleCommand, type LoadAggregate } from './platform-commands.ts';
import type { EngineOptions } from './engines/open-engines.ts';
import { openPlatformEngines, type PlatformEngines } from './engines/platform-engines.ts';
import type { EngineUrls, Need, ResolveOptions } from './engines/resolve-roles.ts';
import {
  bindModules,
  createModuleContext,
  type ModuleBook,
  type PlatformModule,
} from './modules/platform-module.ts';
import {
  readDocuments,
  runProjections,
  type ReadDocuments,
  type WaitForProjection,
} from './platform-projections.ts';
import { createModuleQueues, type QueueDepth } from './modules/module-queues.ts';
import { needsOf } from './modules/role-needs.ts';
import { checkRoles, platformRoles, type PlatformRole } from './config/platform-role.ts';
import { tasksOver } from './platform-tasks.ts';
import { tracedWorkOf } from './traced-work.ts';
import { createTraceIndexer, noTraces, tracesOver } from './platform-traces.ts';
import { bulkTask, bulkType, type BulkOrder } from './failures/bulk-action.ts';
import type { FailurePlatform } from './failures/failure-sources.ts';
import type { ProjectionRebuilds } from './projection-rebuilds.ts';
import { startSweeper } from './start-sweeper.ts';
import {
  announceProcess,
  factsOfProcess,
  runningProcesses,
  type RunningProcess,
} from './processes.ts';

export interface PlatformConfig
  extends
    Omit<EngineOptions, 'outboxMaxAttempts'>,
    Pick<ResolveOptions, 'isProduction' | 'localUrl'> {
  readonly engines?: EngineUrls | undefined;
  readonly modules?: readonly PlatformModule[] | undefined;
  /** Tenants to add to the directory, for names with a hyphen; those of tokens and JWTs are added by themselves. */
  readonly tenants?: readonly string[] | undefined;
  /** Default: all. */
  readonly roles?: readonly PlatformRole[] | undefined;
  /** After this, other processes take over the subscriptions of a process that died. Default: 10 s. */
  readonly leaseMs?: number | undefined;
  /** Of the application, for the list of processes. */
  readonly version?: string | undefined;
  readonly dispatcher?: DispatcherTuning | undefined;
  /** From the environment: `readOutboxEnvironment(process.env)`. */
  readonly outbox?: OutboxSettings | undefined;
  /** Sent messages are removed after this. Default: 7 days. */
  readonly outboxRetentionMs?: number | undefined;
  /** How long the bus keeps messages, by domain. Default: `retentionDefaults()`. */
  readonly busRetention?: readonly RetentionRule[] | undefined;
  /** `file:` or `s3:`: archives streams before they are trimmed. Default: streams to archive are not trimmed. */
  readonly busArchive?: string | undefined;
  readonly busArchiveKeys?: ArchiveKeys | undefined;
  /** Runs the bus sweeper also without a configured bus URL; `required`: a bus without an engine is a local file. */
  readonly usesBus?: Need | undefined;
  /** Task types; types that only handlers of the modules name have the defaults. */
  readonly taskTypes?: readonly TaskType[] | undefined;
  /** A YAML file with `task_types`, reloaded when it changes. */
  readonly taskTypesFile?: string | undefined;
  /** The interval of the task sweeper. Default: 5 s. */
  readonly taskSweepEveryMs?: number | undefined;
  /** False: events are not indexed by their flow, and traces are not available. Default: true. */
  readonly traces?: boolean | undefined;
  /** Flows older than this are removed from the trace index. Default: 30 days. */
  readonly traceRetentionMs?: number | undefined;
  /** How long a stop waits for running handlers and attempts. Default: 20 s. */
  readonly drainMs?: number | undefined;
}

export type DispatcherTuning = Pick<
  OutboxDispatcherOptions,
  'batchSize' | 'concurrency' | 'drainMs' | 'leaseMs' | 'schedule' | 'tickIntervalMs' | 'timeoutMs'
>;

export interface Platform extends Lifecycle {
  readonly roles: readonly PlatformRole[];
  readonly engines: PlatformEngines;
  readonly clock: Clock;
  readonly modules: ModuleBook;
  readonly tokens: Tokens;
  readonly ownerOf: StreamOwner;
  readonly subscriptions: SubscriptionAdmin;
  /** The shards of this process that end again and again. */
  readonly failingShards: () => readonly FailingShard[];
  readonly sagaAdmin: (saga: SagaName) => SagaAdmin;
  /** Rebuilds of the modules' projections in this process; stopping the process cancels them. */
  readonly rebuilds: ProjectionRebuilds;
  readonly delivery: Delivery;
  /** Everything that followed from one request, as a tree, by its correlation id. */
  readonly traces: Traces;
  /** The task engine, opened at the first call; always the same object. */
  tasks(): Promise<Tasks>;
  /** The number of jobs; undefined until the tasks are opened. */
  taskCounts(): Promise<readonly TypeCount[]> | undefined;
  taskBus(): Promise<Bus>;
  /** Replays or discards failures as a job. */
  startBulk(order: BulkOrder): Promise<{ readonly id: string }>;
  processes(): Promise<readonly RunningProcess[]>;
  /** The depth of the work queues that modules of this process use. */
  queueDepths(): Promise<readonly QueueDepth[]>;
  readonly handle: HandleCommand;
  readonly load: LoadAggregate;
  readonly documents: ReadDocuments;
  readonly waitFor: WaitForProjection;
}

const outboxRetentionMsDefault = 7 * 86_400_000;
const traceRetentionMsDefault = 30 * 86_400_000;

/**
 * Opens the engines and binds the modules; `start` runs the parts of its roles. A stop lets running handlers
 * end and releases leases; disposing also closes the engines.
 *
 * @example
 * import { createPlatform, defineModule } from 'millrace/platform';
 *
 * await using platform = await createPlatform({
 *   engines: { store: 'sqlite:.millrace/shop.db' },
 *   modules: [defineModule({ name: 'shop' })],
 * });
 * await platform.start();
 * console.log(await platform.engines.store.head());
 */
export async function createPlatform(config: PlatformConfig = {}): Promise<Platform> {
  const { observer = silentObserver, clock = systemClock, roles = platformRoles } = config;
  const { outbox = readOutboxEnvironment({}), traces: keepsTraces = true } = config;
  const { traceRetentionMs = traceRetentionMsDefault, leaseMs, drainMs, version } = config;

  // Validate the whole configuration before an engine is opened.
  checkRoles(roles);
  const { context, connect } = createModuleContext({ clock, observer });
  const modules = bindModules(config.modules ?? [], context);

  await using opening = new AsyncDisposableStack();
  const { isProduction, localUrl } = config;
  const urls = config.engines ?? {};
  const needs = needsOf(config, modules);
  const engines = opening.use(
    await openPlatformEngines(
      { urls, needs, isProduction, localUrl },
      { ...config, outboxMaxAttempts: outbox.maxAttempts },
    ),
  );
  const { store, outbox: ledger, outboxQueue: queue } = engines;
  const tokens = opening.use(await openTokens(store, { clock, observer }));
  const { tenants } = tokens;
  for (const tenant of config.tenants ?? []) await tokens.addTenant(tenant);
  const ownerOf = createStreamOwner(store, tenants);
  const { handle, load } = opening.use(
    bindCommands(engines, modules, { observer, clock, tenants }),
  );
  const { delivery, optionsFor } = sendingBy(outbox, modules.destinations, { clock, observer });
  const sending = ledger && { ...optionsFor(ledger), drainMs, ...config.dispatcher };
  const failures: FailurePlatform = { clock, engines, tasks: () => tasks.open() };
  const tasks = opening.use(
    tasksOver(engines, {
      types: config.taskTypes,
      typesFile: config.taskTypesFile,
      definitions: modules.tasks,
      own: { type: bulkType, definition: bulkTask(failures) },
      drainMs,
      leaseMs,
      sweepEveryMs: config.taskSweepEveryMs,
      clock,
      observer,
    }),
  );
  const opened = opening.move();

  const resolveTenant = createTenantResolver(ownerOf, tenants);
  const failing = createFailingShards();
  const self = factsOfProcess(
    { roles, version, leaseMs: leaseMs ?? subscriptionLimits.leaseMs },
    clock,
  );
  const { leases } = storageOf(engines);
  const indexing = { clock, observer, worker: self.id, leaseMs, drainMs, failing };
  const running = { ...indexing, resolveTenant };
  const projections = runProjections(engines, modules.projections, running);
  const documents = readDocuments(engines, modules.projections, clock);
  const { traces } = engines;
  const traceRoles = !keepsTraces || traces === undefined ? undefined : { ...engines, traces };
  const traceIndexer =
    traceRoles && roles.includes('subscriptions')
      ? createTraceIndexer(traceRoles, { ...indexing, traceRetentionMs })
      : undefined;

  const moduleQueues = createModuleQueues(() => engines.queue());
  connect({
    send: handle,
    load,
    readAll: (options) => store.readAll(options),
    documents,
    restore: (projection, signal) =>
      restoreProjection(engines, projection, { signal, resolveTenant }),
    keys: () => engines.keys(),
    workQueue: moduleQueues.open,
    waitFor: projections.waitFor,
    bus: () => engines.bus(),
  });

  const sweepBus = async (): Promise<AsyncDisposable> =>
    startBusSweeper(await engines.bus(), {
      clock,
      observer,
      rules: config.busRetention,
      archive:
        config.busArchive === undefined
          ? undefined
          : await openColdStorage(config.busArchive, { keys: config.busArchiveKeys }),
    });

  /** Starts the parts of a role, and returns the disposables that stop them. */
  const starters: Readonly<Record<PlatformRole, () => Promise<AsyncDisposable>[]>> = {
    // The server calls the platform; the role itself runs nothing here.
    api: () => [],
    subscriptions: () => [
      ...modules.projections.map((each) => projections.start(each)),
      ...modules.reactors.map((each) => startReactor(engines, each, { ...running, send: handle })),
      ...modules.sagas.map((each) =>
        startSaga(engines, each, { ...running, send: handle, tenants }),
      ),
      ...modules.subscriptions.map((each) => startSubscription(engines, each, running)),
      ...(ledger === undefined ? [] : modules.outbox).map((each) =>
        startOutboxProjector(
          { ...engines, outbox: ledger as OutboxLedger },
          withSettings(each, outbox),
          running,
        ),
      ),
      ...(traceIndexer === undefined ? [] : [started(traceIndexer)]),
    ],
    // Without a queue the dispatcher sends the messages, and queue workers have nothing to do.
    dispatcher: () =>
      sending === undefined
        ? []
        : [
            started(
              queue === undefined
                ? createOutboxDispatcher(sending)
                : createQueueDispatcher({ ...sending, queue }),
            ),
          ],
    workers: () => [
      ...(queue === undefined || sending === undefined
        ? []
        : [started(createQueueWorker({ ...sending, queue }))]),
      ...tasks.startWorkers(),
    ],
    sweepers: () => [
      ...(ledger === undefined
        ? []
        : [
            startSweeper({
              what: 'outbox',
              clock,
              observer,
              keptMs: config.outboxRetentionMs ?? outboxRetentionMsDefault,
              sweep: (before, limit) => ledger.purge(before, limit),
              onSwept: (count) => observer.count?.('outbox_purged_total', {}, count),
            }),
          ]),
      // Start it also with `traces: false`: flows that were indexed before still expire.
      ...(traces === undefined
        ? []
        : [
            startSweeper({
              what: 'traces',
              clock,
              observer,
              keptMs: traceRetentionMs,
              sweep: (before, limit) => traces.sweep(before.getTime(), limit),
            }),
          ]),
      // A bus that is not configured is not opened only to be swept.
      ...(urls.bus === undefined && !(config.usesBus !== undefined && engines.has('bus'))
        ? []
        : [sweepBus()]),
      ...tasks.startSweepers(),
    ],
  };

  let parts: AsyncDisposable[] = [];
  const lifecycle = createLifecycle({
    async start() {
      const starting = await Promise.allSettled([
        Promise.resolve(announceProcess(leases, self, { clock, observer })),
        ...roles.flatMap((role) => [
          ...starters[role](),
          ...modules.services.filter((each) => each.role === role).map((each) => each.start()),
        ]),
      ]);
      parts = starting.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      throwFirst(starting);
      await tasks.resumeOwn();
    },
    async stop() {
      const stopping = parts;
      parts = [];
      await projections.rebuilds[Symbol.asyncDispose]();
      // Stop all parts concurrently: each part may need its drain time, and the process has little time to stop.
      throwFirst(await Promise.allSettled(stopping.map((each) => each[Symbol.asyncDispose]())));
    },
  });

  return withLifecycle(lifecycle, {
    async [Symbol.asyncDispose]() {
      await projections.rebuilds[Symbol.asyncDispose]();
      await lifecycle.stop();
      await opened.disposeAsync();
    },
    roles,
    engines,
    clock,
    modules,
    tokens,
    ownerOf,
    delivery,
    traces: traceRoles
      ? tracesOver(traceRoles, {
          clock,
          indexer: traceIndexer,
          workOf: tracedWorkOf({ clock, engines, tasks: tasks.open }),
        })
      : noTraces,
    subscriptions: subscriptionAdmin(engines, { clock }),
    failingShards: () => failing.list(),
    rebuilds: projections.rebuilds,
    sagaAdmin: (saga: SagaName) => sagaAdmin(engines, saga, { clock, tenants }),
    tasks: tasks.open,
    taskBus: tasks.bus,
    taskCounts: tasks.counts,
    async processes() {
      const workers = engines.has('tasks') ? await (await tasks.open()).workers() : [];
      return runningProcesses(leases, workers, { self: self.id, clock });
    },
    queueDepths: moduleQueues.depths,
    startBulk: (order: BulkOrder) =>
      tasks.enqueueOwn({
        type: bulkType.name,
        payload: order,
        tenant: order.filter.tenant,
        enqueuedBy: order.by,
      }),
    handle,
    load,
    documents,
    waitFor: projections.waitFor,
  });
}

async function started<Part extends Lifecycle>(part: Part): Promise<Part> {
  await part.start();
  return part;
}

function throwFirst(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  const failed = outcomes.find((each) => each.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
