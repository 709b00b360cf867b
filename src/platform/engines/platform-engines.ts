// The engines of a platform's roles, by URL. A store that only has events (KurrentDB, MongoDB) gets checkpoints and the
// like from the outbox's database.

import type { AggregateStorage } from '../../aggregates/create-command-handler.ts';
import type { Bus } from '../../bus/bus.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { once } from '../../foundation/once.ts';
import type { DeliveryQueue } from '../../outbox/delivery-queue.ts';
import type { OutboxHost, OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { ReadModelHost, ReadModelStore } from '../../projections/read-model-store.ts';
import type { ReadModelVersions } from '../../projections/read-model-versions.ts';
import type { SagaHost, SagaIndex } from '../../reactors/saga-index.ts';
import type { TraceHost, TraceIndex } from '../../traces/trace-index.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { EventStoreOptions } from '../../store/create-event-store.ts';
import type {
  LeaseStore,
  SubscriptionHost,
  SubscriptionStorage,
} from '../../subscriptions/subscription-storage.ts';
import { busUrlOf, openBus } from './open-bus.ts';
import { openEventStore } from './open-event-store.ts';
import { openDeliveryQueue } from './open-delivery-queue.ts';
import { openLeases } from './open-leases.ts';
import { openOutboxLedger } from './open-outbox-ledger.ts';
import { openReadModels } from './open-read-models.ts';
import { openSagaIndex } from './open-saga-index.ts';
import { isEngine, isSameDatabase, parseStoreUrl } from './store-url.ts';

/** A URL for each role; the defaults follow from the store. */
export interface EngineUrls {
  /** Default: `sqlite:.millrace/events.db`. */
  readonly store?: string | undefined;
  /** Read models, leases, the index of sagas. Default: the outbox's database. */
  readonly keys?: string | undefined;
  /** Default: the store's database. */
  readonly outbox?: string | undefined;
  /**
   * Jobs of modules, and in Redis also the delivery queue of the outbox. Default: a file next to the store's, and the
   * dispatcher sends itself.
   */
  readonly queue?: string | undefined;
  /** Default: the store's file, or `sqlite:.millrace/bus.db`. */
  readonly bus?: string | undefined;
  /** Jobs of tasks and their streams. Default: the URL of the bus. */
  readonly tasks?: string | undefined;
}

export interface PlatformEngines extends AsyncDisposable {
  readonly store: EventStore;
  readonly storage: SubscriptionStorage;
  readonly readModels: ReadModelStore;
  readonly readModelVersions: ReadModelVersions;
  readonly sagas: SagaIndex;
  readonly traces: TraceIndex;
  readonly aggregates: AggregateStorage;
  readonly ledger: OutboxLedger;
  /** Rows of the outbox and checkpoints commit together. */
  readonly sharesDatabase: boolean;
  /** Absent: in the storage. */
  readonly leases: LeaseStore | undefined;
  /** Absent: the dispatcher sends itself. */
  readonly queue: DeliveryQueue | undefined;
  /** Opened on first use; always the same object. */
  readonly bus: () => Promise<Bus>;
  readonly urls: CompleteUrls;
}

/** The URLs with the defaults of the roles that every platform has. */
export interface CompleteUrls extends EngineUrls {
  readonly store: string;
  readonly keys: string;
  readonly outbox: string;
}

export interface EngineOptions extends Pick<EventStoreOptions, 'names' | 'payloadBytesMax'> {
  readonly migrate?: 'auto' | 'off' | undefined;
  readonly observer?: Observer | undefined;
  readonly clock?: Clock | undefined;
}

type Host = EventStore &
  Partial<SubscriptionHost & ReadModelHost & SagaHost & TraceHost & AggregateStorage & OutboxHost>;

export const storeUrlDefault = 'sqlite:.millrace/events.db';

export async function openEngines(
  given: EngineUrls,
  options: EngineOptions = {},
): Promise<PlatformEngines> {
  const { observer = silentObserver, clock = systemClock, migrate = 'auto' } = options;
  const urls = completeUrls(given);
  await using opened = new AsyncDisposableStack();
  const { names, payloadBytesMax } = options;
  const storeOptions = { observer, clock, migrate, names, payloadBytesMax };
  const store: Host = opened.use(await openEventStore(urls.store, storeOptions));
  // Opened as a store, but used only for checkpoints and the like.
  const side: Host =
    store.subscriptions === undefined
      ? opened.use(await openEventStore(urls.outbox, storeOptions))
      : store;
  const isInSide = side !== store || urls.outbox === urls.store;
  const ledger = opened.use(
    (isInSide ? side.openOutbox?.() : undefined) ??
      (await openOutboxLedger(urls.outbox, { migrate, observer })),
  );
  const inRedis = isEngine('redis', urls.keys);
  const inNats = isEngine('nats', urls.keys);
  const ownReadModels =
    inNats || urls.keys === urls.outbox
      ? undefined
      : opened.use(await openReadModels(urls.keys, { observer }));
  const leases =
    inRedis || inNats ? opened.use(await openLeases(urls.keys, { observer })) : undefined;
  const sagas = inRedis ? opened.use(await openSagaIndex(urls.keys, { observer })) : side.sagas;
  const queue =
    // A queue in a file is for modules only; the outbox then has no queue.
    urls.queue === undefined || isEngine('sqlite', urls.queue)
      ? undefined
      : opened.use(await openDeliveryQueue(urls.queue, { observer }));
  const all = opened.move();
  return {
    bus: once(async () => all.use(await openBus(busUrlOf(urls), { observer, clock }))),
    store,
    storage: present('checkpoints', side.subscriptions),
    readModels: ownReadModels ?? present('read models', side.readModels),
    readModelVersions: present('versions of read models', side.readModelVersions),
    sagas: present('sagas', sagas),
    traces: present('traces', side.traces),
    aggregates: {
      snapshots: present('snapshots', side.snapshots),
      keyClaims: present('idempotency keys', side.keyClaims),
    },
    ledger,
    sharesDatabase: isSameDatabase(side === store ? urls.store : urls.outbox, urls.outbox),
    leases,
    queue,
    urls,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Adds the defaults; a store without checkpoints needs an explicit outbox. */
export function completeUrls(given: EngineUrls): CompleteUrls {
  const { store = storeUrlDefault, outbox, keys, ...others } = given;
  const { engine } = parseStoreUrl(store);
  const hasRoom = engine === 'sqlite' || engine === 'postgres' || engine === 'memory';
  if (!hasRoom && outbox === undefined) {
    throw new MillraceError(
      'CONFIG_INVALID',
      `${engine} cannot store checkpoints and the outbox: configure a database for the outbox (MILLRACE_OUTBOX=postgres://… or sqlite:…)`,
      { details: { field: 'outbox', engine } },
    );
  }
  const side = outbox ?? store;
  return { store, outbox: side, keys: keys ?? side, ...others };
}

function present<Part>(what: string, part: Part | undefined): Part {
  if (part !== undefined) return part;
  throw new MillraceError('NOT_SUPPORTED', `the outbox's database does not support ${what}`, {
    details: { what, field: 'outbox' },
  });
}
