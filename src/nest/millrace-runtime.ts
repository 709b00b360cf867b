// The engines and runners of the module, and the hooks with which Nest starts and stops them.

import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { buildSubscriptionName } from '../contracts/subscription-name.ts';
import {
  type Delivery,
  type DeliveryOptions,
  createDelivery,
} from '../delivery/create-delivery.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Deliver } from '../outbox/attempt-delivery.ts';
import {
  type OutboxDispatcher,
  type OutboxDispatcherOptions,
  createOutboxDispatcher,
} from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import {
  type OutboxProjectorDefinition,
  startOutboxProjector,
} from '../outbox/outbox-projector.ts';
import { openEventStore } from '../platform/engines/open-event-store.ts';
import { openOutboxLedger } from '../platform/engines/open-outbox-ledger.ts';
import type { EventStore } from '../store/event-store.ts';
import {
  startSubscription,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import type { SubscriptionHost } from '../subscriptions/subscription-storage.ts';
import { type SubscriptionDefinition, subscription } from '../subscriptions/subscription.ts';
import type { HealthThresholds } from './decide-health.ts';
import { type MapToOutboxMark, mapToOutboxKey, outboxMapping } from './map-to-outbox.ts';
import { findMarkedMethods } from './method-marks.ts';
import { nestObserver } from './nest-logger.ts';
import { type OnEventMark, handlerSubscriptions, onEventKey } from './on-event.ts';

export interface MillraceModuleOptions {
  /** Kebab-case; derived subscription names start with it: `sub:<service>:…`. */
  readonly service?: string | undefined;
  /** A URL for `openEventStore`, or a store, which closes with the application. */
  readonly store?: string | (EventStore & Partial<SubscriptionHost>) | undefined;
  /** Default: in the database of the store, if that is a URL. False: no outbox. */
  readonly outbox?: MillraceOutboxOptions | false | undefined;
  /** Subscriptions in addition to those of `@OnEvent`. */
  readonly subscriptions?: readonly SubscriptionDefinition[] | undefined;
  /** Options of all subscriptions and projectors: external leases, `onAlert`, tuning. */
  readonly running?: Omit<SubscriptionOptions, 'observer'> | undefined;
  /** False: this process only appends, enqueues and queries, and runs nothing. Default: true. */
  readonly run?: boolean | undefined;
  readonly health?: Partial<HealthThresholds> | undefined;
  /** Default: Nest's logger. */
  readonly observer?: Observer | undefined;
}

export interface MillraceOutboxOptions {
  /** A URL for `openOutboxLedger`, or a ledger, which closes with the application. Default: the URL of the store. */
  readonly ledger?: string | OutboxLedger | undefined;
  /** The ledger is in the database of the store, so rows and checkpoint commit together. Default: whether the URLs are equal. */
  readonly sharesDatabase?: boolean | undefined;
  /** Settings of the `@MapToOutbox` projector. Default name: `sub:<service>:outbox:v1`. */
  readonly projector?: Partial<Omit<OutboxProjectorDefinition, 'filter' | 'mapper'>> | undefined;
  readonly projectors?: readonly OutboxProjectorDefinition[] | undefined;
  /** Destinations by integration type. Without this and `deliver`, messages wait for another process. */
  readonly destinations?: DeliveryOptions['destinations'] | undefined;
  /** A delivery function, instead of `destinations`. */
  readonly deliver?: Deliver | undefined;
  readonly dispatcher?:
    | Omit<OutboxDispatcherOptions, 'deliver' | 'ledger' | 'observer'>
    | undefined;
}

type Store = EventStore & Partial<SubscriptionHost>;

interface Opened {
  readonly store: Store | undefined;
  readonly ledger: OutboxLedger | undefined;
}

interface Discovery {
  readonly discovery: DiscoveryService;
  readonly scanner: MetadataScanner;
}

/**
 * The runners of this process; inject it to wait for subscriptions or to inspect them.
 *
 * @example
 * import { Injectable } from '@nestjs/common';
 * import { MillraceRuntime } from 'millrace/nest';
 *
 * @Injectable()
 * export class Ready {
 *   constructor(private readonly millrace: MillraceRuntime) {}
 *
 *   async whenCaughtUp(): Promise<void> {
 *     await Promise.all([...this.millrace.runners.values()].map((runner) => runner.whenCaughtUp()));
 *   }
 * }
 */
export class MillraceRuntime {
  readonly store: Store | undefined;
  readonly ledger: OutboxLedger | undefined;
  readonly delivery: Delivery | undefined;
  readonly dispatcher: OutboxDispatcher | undefined;
  readonly observer: Observer;
  readonly options: MillraceModuleOptions;
  readonly #discovery: Discovery;
  readonly #runners = new Map<string, SubscriptionRunner>();
  #closing: Promise<void> | undefined;

  private constructor(options: MillraceModuleOptions, discovery: Discovery, opened: Opened) {
    const { observer = nestObserver() } = options;
    const outbox = outboxOf(options);
    this.options = options;
    this.observer = observer;
    this.store = opened.store;
    this.ledger = opened.ledger;
    this.#discovery = discovery;
    if (outbox.destinations !== undefined) {
      this.delivery = createDelivery({ destinations: outbox.destinations, observer });
    }
    const deliver: Deliver | undefined = outbox.deliver ?? this.delivery?.deliver;
    if (this.ledger !== undefined && deliver !== undefined) {
      this.dispatcher = createOutboxDispatcher({
        ...outbox.dispatcher,
        ledger: this.ledger,
        deliver,
        observer,
      });
    }
  }

  /** Opens the engines of the options; if one fails, closes the others. */
  static async open(
    options: MillraceModuleOptions,
    discovery: Discovery,
  ): Promise<MillraceRuntime> {
    const { store: storeTarget, observer = nestObserver() } = options;
    const ledgerTarget = ledgerTargetOf(options);
    if (storeTarget === undefined && ledgerTarget === undefined) {
      throw new MillraceError(
        'CONFIG_INVALID',
        'the module needs a store, an outbox ledger, or both',
        {
          details: { field: 'store' },
        },
      );
    }
    const store =
      typeof storeTarget === 'string'
        ? await openEventStore(storeTarget, { observer })
        : storeTarget;
    let ledger: OutboxLedger | undefined;
    try {
      ledger =
        typeof ledgerTarget === 'string'
          ? await openOutboxLedger(ledgerTarget, { observer })
          : ledgerTarget;
      // A cheap query that needs the whole schema, so an unusable ledger fails at startup.
      await ledger?.paused();
      return new MillraceRuntime(options, discovery, { store, ledger });
    } catch (error) {
      await ledger?.[Symbol.asyncDispose]();
      await store?.[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** All runners by name: `@OnEvent` subscriptions, those of the options, and outbox projectors. */
  get runners(): ReadonlyMap<string, SubscriptionRunner> {
    return this.#runners;
  }

  /** Called by Nest after all modules are initialised. Validates all declarations before starting any. */
  async onApplicationBootstrap(): Promise<void> {
    try {
      const subscriptions = this.#subscriptions();
      const projectors = this.#projectors();
      checkNames([...subscriptions, ...projectors]);
      if (this.options.run === false) return;
      for (const each of projectors) this.#runners.set(each.name, await this.#project(each));
      for (const each of subscriptions) this.#runners.set(each.name, await this.#subscribe(each));
      await this.dispatcher?.start();
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  /** Finishes running handlers and leaves the rest to other processes. Requests may still append. */
  async beforeApplicationShutdown(): Promise<void> {
    const running = [...this.#runners.values(), ...(this.dispatcher ? [this.dispatcher] : [])];
    const results = await Promise.allSettled(running.map((each) => each.stop()));
    for (const result of results) {
      if (result.status === 'rejected')
        this.observer.log?.error({ err: result.reason }, 'could not stop');
    }
  }

  /** Called by Nest after all requests have completed. */
  async onApplicationShutdown(): Promise<void> {
    await this.#close();
  }

  #close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    await this.beforeApplicationShutdown();
    const resources = [...destinationsOf(outboxOf(this.options)), this.ledger, this.store];
    for (const each of resources.filter(isDisposable)) {
      try {
        await each[Symbol.asyncDispose]();
      } catch (err) {
        this.observer.log?.error({ err }, 'could not close');
      }
    }
  }

  #subscriptions(): readonly SubscriptionDefinition[] {
    const methods = findMarkedMethods<OnEventMark>(onEventKey, this.#discovery);
    const { service, subscriptions = [] } = this.options;
    const all = [...handlerSubscriptions(methods, service), ...subscriptions];
    for (const each of all) subscription(each);
    return all;
  }

  #projectors(): readonly OutboxProjectorDefinition[] {
    const methods = findMarkedMethods<MapToOutboxMark>(mapToOutboxKey, this.#discovery);
    const { projector = {}, projectors = [] } = outboxOf(this.options);
    if (methods.length === 0) return projectors;
    const name = projector.name ?? projectorNameOf(this.options);
    return [{ ...projector, name, ...outboxMapping(methods) }, ...projectors];
  }

  #project(each: OutboxProjectorDefinition): Promise<SubscriptionRunner> {
    return startOutboxProjector(needed('store', this.store), each, {
      ...this.options.running,
      ledger: needed('outbox', this.ledger),
      sharesDatabase: sharesDatabase(this.options, this.ledger),
      observer: this.observer,
    });
  }

  #subscribe(each: SubscriptionDefinition): Promise<SubscriptionRunner> {
    const { running } = this.options;
    const options = { ...running, observer: this.observer };
    return startSubscription(needed('store', this.store), subscription(each), options);
  }
}

function outboxOf({ outbox = {} }: MillraceModuleOptions): MillraceOutboxOptions {
  return outbox === false ? {} : outbox;
}

/** Without duplicates: a destination may serve several integration types. */
function destinationsOf({ destinations = {} }: MillraceOutboxOptions): ReadonlySet<unknown> {
  const all = Object.values(destinations);
  return new Set(all.map((each) => (typeof each === 'function' ? each : each.send)));
}

function isDisposable(value: unknown): value is AsyncDisposable {
  return Object(value) === value && Symbol.asyncDispose in (value as object);
}

function ledgerTargetOf(options: MillraceModuleOptions): string | OutboxLedger | undefined {
  const { store, outbox } = options;
  if (outbox === false) return undefined;
  if (outbox?.ledger !== undefined) return outbox.ledger;
  return typeof store === 'string' && /^(memory|sqlite|postgres(ql)?):/.test(store)
    ? store
    : undefined;
}

function sharesDatabase(options: MillraceModuleOptions, ledger: OutboxLedger | undefined): boolean {
  const { sharesDatabase: given } = outboxOf(options);
  if (given !== undefined) return given;
  if (ledger?.capabilities.callerTransaction !== true) return false;
  return typeof options.store === 'string' && ledgerTargetOf(options) === options.store;
}

function projectorNameOf({ service }: MillraceModuleOptions): string {
  return buildSubscriptionName(needed('service', service), 'outbox', 1);
}

function needed<T>(field: 'outbox' | 'service' | 'store', value: T | undefined): T {
  if (value !== undefined) return value;
  throw new MillraceError(
    'CONFIG_INVALID',
    `the declared handlers need the module option '${field}'`,
    {
      details: { field },
    },
  );
}

function checkNames(all: readonly { readonly name: string }[]): void {
  const seen = new Set<string>();
  for (const { name } of all) {
    if (seen.has(name)) {
      throw new MillraceError('SUBSCRIPTION_INVALID', `two subscriptions have the name '${name}'`, {
        details: { name },
      });
    }
    seen.add(name);
  }
}
