// The whole flow on one page: engines by URL, modules on top, and what of it this process runs.

import type { CommandRequest, CommandResult } from '../aggregates/command-handler.ts';
import type { Bus } from '../bus/bus.ts';
import { startBusSweeper } from '../bus/bus-sweeper.ts';
import type { RetentionRule } from '../bus/retention.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Delivery } from '../delivery/create-delivery.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver } from '../foundation/observer.ts';
import {
  createOutboxDispatcher,
  type OutboxDispatcherOptions,
} from '../outbox/outbox-dispatcher.ts';
import { createQueueDispatcher } from '../outbox/queue-dispatcher.ts';
import { createQueueWorker } from '../outbox/queue-worker.ts';
import { startOutboxProjector } from '../outbox/outbox-projector.ts';
import { restoreProjection } from '../projections/restore-projection.ts';
import { activeDocuments } from '../projections/active-documents.ts';
import type { DocumentQueries } from '../projections/documents.ts';
import type { Projection } from '../projections/projection.ts';
import type { ModelKey } from '../projections/read-model-store.ts';
import type { WaitOptions } from '../projections/wait-with-timeout.ts';
import { sagaAdmin, type SagaAdmin } from '../reactors/saga-admin.ts';
import type { SagaName } from '../reactors/saga-fact.ts';
import { startReactor } from '../reactors/start-reactor.ts';
import { startSaga } from '../reactors/start-saga.ts';
import type { Position } from '../store/position.ts';
import { startSubscription } from '../subscriptions/start-subscription.ts';
import { subscriptionAdmin, type SubscriptionAdmin } from '../subscriptions/subscription-admin.ts';
import type { SubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import type { TypeCount } from '../tasks/task-engine.ts';
import type { Tasks } from '../tasks/tasks.ts';
import type { TaskType } from '../tasks/task-type.ts';
import type { Traces } from '../traces/create-traces.ts';
import { traceSubscription } from '../traces/keep-trace-index.ts';
import { withLeases } from '../subscriptions/with-leases.ts';
import type { LoadAggregate } from './load-aggregate.ts';
import { openColdStorage, type ArchiveKeys } from './open-bus.ts';
import { openTokens, type Tokens } from './open-tokens.ts';
import { readOutboxEnvironment, type OutboxSettings } from './outbox-environment.ts';
import { sendingBy, withSettings } from './outbox-settings.ts';
import { bindCommands } from './platform-commands.ts';
import {
  openEngines,
  type EngineOptions,
  type EngineUrls,
  type PlatformEngines,
} from './platform-engines.ts';
import { bindModules, type ModuleBook, type PlatformModule } from './platform-module.ts';
import { runProjections } from './platform-projections.ts';
import { platformRoles, type PlatformRole } from './platform-role.ts';
import { tasksOver } from './platform-tasks.ts';
import { platformWork } from './platform-work.ts';
import { noTraces, tracesOver } from './platform-traces.ts';
import type { ProjectionRebuilds } from './projection-rebuilds.ts';
import { startSweeper } from './start-sweeper.ts';

export type DocumentFamily = Pick<ModelKey, 'bc' | 'aggregate'>;

export interface PlatformConfig extends EngineOptions {
  readonly engines?: EngineUrls;
  readonly modules?: readonly PlatformModule[];
  /** Default: all. */
  readonly roles?: readonly PlatformRole[];
  /** After which others take subscriptions over from a process that died. Default: 10 s. */
  readonly leaseMs?: number;
  readonly dispatcher?: DispatcherTuning;
  /** By the environment: `readOutboxEnvironment(process.env)`. */
  readonly outbox?: OutboxSettings;
  /** Sent messages are forgotten after this. Default: 7 days. */
  readonly outboxRetentionMs?: number;
  /** How long the bus keeps messages, by domain. Default: `retentionDefaults()`. */
  readonly busRetention?: readonly RetentionRule[];
  /** `file:` or `s3:`: where streams go that are archived before they are trimmed. Absent: they stay. */
  readonly busArchive?: string;
  /** Of the bucket, where it is one. */
  readonly busArchiveKeys?: ArchiveKeys;
  /** The bus is used, also where no URL of one is said: its sweeper runs. */
  readonly usesBus?: boolean;
  /** Of tasks; those of the modules' handlers that are not among them have the defaults. */
  readonly taskTypes?: readonly TaskType[];
  /** A YAML file with `task_types`, read again whenever it changes. */
  readonly taskTypesFile?: string;
  /** How often jobs are looked after. Default: 5 s. */
  readonly taskSweepEveryMs?: number;
  /** False: events are not indexed by their flow, and nobody can ask for one. Default: true. */
  readonly traces?: boolean;
  /** Flows are forgotten after this. Default: 30 days. */
  readonly traceRetentionMs?: number;
  /** How long handlers and sends that are under way may take when it is stopped. Default: 20 s. */
  readonly drainMs?: number;
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
  readonly subscriptions: SubscriptionAdmin;
  readonly sagaAdmin: (saga: SagaName) => SagaAdmin;
  /** Of projections of the modules, in this process; they end with it. */
  readonly rebuilds: ProjectionRebuilds;
  readonly delivery: Delivery;
  /** What came of one request, as a tree, by its correlation id. */
  readonly traces: Traces;
  /** Opened when they are first asked for; the same each time. */
  tasks(): Promise<Tasks>;
  /** How many jobs there are; undefined while nobody has opened them. */
  taskCounts(): Promise<readonly TypeCount[]> | undefined;
  /** The bus that tells of them. */
  taskBus(): Promise<Bus>;
  /** A command of any aggregate of the modules, by its type; its payload is checked. */
  handle(request: CommandRequest<NewCommand>): Promise<CommandResult<unknown, NewEvent>>;
  /** What an aggregate of the modules is now. */
  readonly load: LoadAggregate;
  /** The documents of a read model, in whatever version is active. */
  documents(family: DocumentFamily): DocumentQueries<object>;
  /** Until the projection, in whatever process, has seen everything up to this position. */
  waitFor(projection: Projection, position: Position, options?: WaitOptions): Promise<void>;
}

const outboxRetentionMsDefault = 7 * 86_400_000;
const traceRetentionMsDefault = 30 * 86_400_000;
/** Which version of a read model is asked is looked up so often: each time would cost as much as the query. */
const versionRefreshMs = 250;

/**
 * Opens the engines, binds the modules, and runs what the roles say once it is started. Stopping lets
 * what is under way come to its end and gives leases back; disposing also closes the engines.
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
  checkRoles(roles);
  const modules = bindModules(config.modules ?? [], {
    send: (request) => handle(request),
    load: (aggregate, address) => load(aggregate, address),
    clock,
    observer,
    readAll: (options) => store.readAll(options),
    documents: (family) => documents(family),
    restore: (projection, signal) =>
      restoreProjection(store, projection, {
        readModels: engines.readModels,
        ...(signal === undefined ? {} : { signal }),
      }),
    keys: () => work.keys(),
    workQueue: (name, options) => work.queue(name, options),
    waitFor: (...wanted) => projections.waitFor(...wanted),
    bus: () => engines.bus(),
  });
  await using opened = new AsyncDisposableStack();
  const engines = opened.use(await openEngines(config.engines ?? {}, config));
  const { store, storage, ledger, leases, queue } = engines;
  const work = opened.use(platformWork(engines.urls, { clock, observer }));
  const tokens = opened.use(await openTokens(store, { clock, observer }));
  const { handle, load } = opened.use(
    bindCommands(engines, modules, { observer, clock, tenants: tokens.tenants }),
  );
  const { outbox = readOutboxEnvironment({}), dispatcher = {} } = config;
  const send = sendingBy(outbox, modules.destinations)({ ledger, clock, observer });
  const sending = {
    ...send.options,
    ...(config.drainMs === undefined ? {} : { drainMs: config.drainMs }),
    ...dispatcher,
  };
  const tasks = opened.use(
    tasksOver(engines, {
      types: config.taskTypes,
      typesFile: config.taskTypesFile,
      definitions: modules.tasks,
      drainMs: config.drainMs,
      leaseMs: config.leaseMs,
      sweepEveryMs: config.taskSweepEveryMs,
      clock,
      observer,
    }),
  );
  const all = opened.move();
  const common = {
    storage,
    clock,
    observer,
    ...(leases === undefined ? {} : { leases }),
    ...(config.leaseMs === undefined ? {} : { leaseMs: config.leaseMs }),
    ...(config.drainMs === undefined ? {} : { drainMs: config.drainMs }),
  };
  const shared = leases === undefined ? storage : withLeases(storage, leases);
  const projections = runProjections(engines, modules.projections, { ...common, shared });

  const { traces: keepsTraces = true, traceRetentionMs = traceRetentionMsDefault } = config;
  let indexing: SubscriptionRunner | undefined;
  const indexTraces = async (): Promise<AsyncDisposable> => {
    const notBeforeMs = (): number => clock.now() - traceRetentionMs;
    const each = traceSubscription(engines.traces, { notBeforeMs });
    const runner = await startSubscription(store, each, common);
    indexing = runner;
    return {
      async [Symbol.asyncDispose]() {
        indexing = undefined;
        await runner.stop();
      },
    };
  };

  const sweepTheBus = async (): Promise<AsyncDisposable> =>
    startBusSweeper(await engines.bus(), {
      clock,
      observer,
      rules: config.busRetention,
      archive:
        config.busArchive === undefined
          ? undefined
          : await openColdStorage(config.busArchive, { keys: config.busArchiveKeys }),
    });

  /** Each gives back what has to be stopped. */
  const starters: Readonly<Record<PlatformRole, () => Promise<AsyncDisposable>[]>> = {
    // Whoever serves requests asks the platform; there is nothing to run for it here.
    api: () => [],
    subscriptions: () => [
      ...modules.projections.map((each) => projections.start(each)),
      ...modules.reactors.map((each) => startReactor(store, each, { ...common, send: handle })),
      ...modules.sagas.map((each) =>
        startSaga(store, each, {
          ...common,
          send: handle,
          index: engines.sagas,
          tenants: tokens.tenants,
        }),
      ),
      ...modules.subscriptions.map((each) => startSubscription(store, each, common)),
      ...modules.outbox.map((each) =>
        startOutboxProjector(store, withSettings(each, outbox), {
          ...common,
          ledger,
          sharesDatabase: engines.sharesDatabase,
        }),
      ),
      ...(keepsTraces ? [indexTraces()] : []),
    ],
    // Without a queue the dispatcher sends by itself, and there is nothing for workers to do.
    dispatcher: () => [
      started(
        queue === undefined
          ? createOutboxDispatcher(sending)
          : createQueueDispatcher({ ...sending, queue }),
      ),
    ],
    workers: () => [
      ...(queue === undefined ? [] : [started(createQueueWorker({ ...sending, queue }))]),
      ...tasks.startWorkers(),
    ],
    sweepers: () => [
      startSweeper({
        what: 'outbox',
        clock,
        observer,
        keptMs: config.outboxRetentionMs ?? outboxRetentionMsDefault,
        sweep: (before, limit) => ledger.purge(before, limit),
        onSwept: (count) => observer.count?.('outbox_purged_total', {}, count),
      }),
      // Also where none are kept any more: those of before grow old.
      startSweeper({
        what: 'traces',
        clock,
        observer,
        keptMs: traceRetentionMs,
        sweep: (before, limit) => engines.traces.sweep(before.getTime(), limit),
      }),
      // Where nobody has named a bus, nobody may want one: it is not opened for its sweeper alone.
      ...(engines.urls.bus === undefined && config.usesBus !== true ? [] : [sweepTheBus()]),
      ...tasks.startSweepers(),
    ],
  };

  const models = modules.projections.map(({ readModel }) => readModel);
  const families = Map.groupBy(models, ({ bc, aggregate }) => `${bc}.${aggregate}`);
  const queries = new Map(
    [...families].map(([family, versions]) => [
      family,
      activeDocuments(engines, versions, { clock, refreshMs: versionRefreshMs }),
    ]),
  );

  const documents = ({ bc, aggregate }: DocumentFamily): DocumentQueries<object> => {
    const known = queries.get(`${bc}.${aggregate}`);
    if (known !== undefined) return known;
    throw new MillraceError('READ_MODEL_UNKNOWN', `there is no read model '${bc}.${aggregate}'`, {
      details: { bc, aggregate },
    });
  };

  let running: AsyncDisposable[] = [];
  const lifecycle = createLifecycle({
    async start() {
      const parts = await Promise.allSettled(
        roles.flatMap((role) => [
          ...starters[role](),
          ...modules.services.filter((each) => each.role === role).map((each) => each.start()),
        ]),
      );
      running = parts.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      throwFirst(parts);
    },
    async stop() {
      const stopping = running;
      running = [];
      await projections.rebuilds[Symbol.asyncDispose]();
      // All at once: each may take its time to finish, and the time is short.
      throwFirst(await Promise.allSettled(stopping.map((each) => each[Symbol.asyncDispose]())));
    },
  });

  return {
    get state() {
      return lifecycle.state;
    },
    start: () => lifecycle.start(),
    stop: () => lifecycle.stop(),
    async [Symbol.asyncDispose]() {
      await projections.rebuilds[Symbol.asyncDispose]();
      await lifecycle.stop();
      await all.disposeAsync();
    },
    roles,
    engines,
    clock,
    modules,
    tokens,
    delivery: send.delivery,
    traces: keepsTraces ? tracesOver(engines, { clock, runnerHere: () => indexing }) : noTraces,
    subscriptions: subscriptionAdmin(store, { storage: shared, clock }),
    rebuilds: projections.rebuilds,
    sagaAdmin: (saga) =>
      sagaAdmin(store, saga, { index: engines.sagas, clock, tenants: tokens.tenants }),
    tasks: tasks.open,
    taskBus: tasks.bus,
    taskCounts: tasks.counts,
    handle,
    load,
    documents,
    waitFor: projections.waitFor,
  };
}

async function started<Part extends Lifecycle>(part: Part): Promise<Part> {
  await part.start();
  return part;
}

function throwFirst(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  const failed = outcomes.find((each) => each.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

function checkRoles(roles: readonly PlatformRole[]): void {
  const unknown = roles.find((role) => !platformRoles.includes(role));
  if (unknown === undefined && roles.length > 0) return;
  const list = platformRoles.join(', ');
  throw new MillraceError(
    'CONFIG_INVALID',
    unknown === undefined
      ? `a platform has at least one of the roles ${list}`
      : `'${unknown}' is none of the roles ${list}`,
    { details: { field: 'roles' } },
  );
}
