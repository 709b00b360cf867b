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
import type { RoleMap } from '../platform/engines/engine-roles.ts';
import { createEngineSet } from '../platform/engines/open-engines.ts';
import { contextFilter } from '../platform/modules/source-streams.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { EventStore } from '../store/event-store.ts';
import {
  startSubscription,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import type {
  LeaseStore,
  SubscriptionRoles,
  SubscriptionStorage,
} from '../subscriptions/subscription-storage.ts';
import { type SubscriptionDefinition, subscription } from '../subscriptions/subscription.ts';
import type { HealthThresholds } from './decide-health.ts';
import { type MapToOutboxMark, mapToOutboxKey, outboxMapping } from './map-to-outbox.ts';
import { findMarkedMethods } from './method-marks.ts';
import { nestObserver } from './nest-logger.ts';
import { type OnEventMark, handlerSubscriptions, onEventKey } from './on-event.ts';

export interface MillraceModuleOptions {
  /** Kebab-case; derived subscription names start with it: `sub:<service>:…`. */
  readonly service?: string | undefined;
  /**
   * The bounded context of the application, such as `paymenthub`. Handlers and mappers read the events of their types in
   * its streams; a decorator with a `category` reads others.
   */
  readonly bc?: string | undefined;
  /** A URL, or roles, such as the handle of an engine. */
  readonly store?: string | MillraceRoles | undefined;
  /** Default: the outbox of the store's engine, if it has one. False: no outbox. */
  readonly outbox?: MillraceOutboxOptions | false | undefined;
  /** Subscriptions in addition to those of `@OnEvent`. */
  readonly subscriptions?: readonly SubscriptionDefinition[] | undefined;
  /** Options of all subscriptions and projectors: `onAlert`, tuning. */
  readonly running?: Omit<SubscriptionOptions, 'observer'> | undefined;
  /** False: this process only appends, enqueues and queries, and runs nothing. Default: true. */
  readonly run?: boolean | undefined;
  readonly health?: Partial<HealthThresholds> | undefined;
  /** Default: Nest's logger. */
  readonly observer?: Observer | undefined;
}

/**
 * The roles of the module. The handle of an engine can be passed as it is, and the roles of several engines can be
 * combined. A disposable object, such as a handle, closes with the application.
 */
export interface MillraceRoles extends Partial<AsyncDisposable> {
  readonly store: EventStore;
  /** Checkpoints and dead letters. Handlers and mappers need them. */
  readonly subscriptions?: SubscriptionStorage | undefined;
  readonly outbox?: OutboxLedger | undefined;
  /** Leases in Redis or NATS; the same in all processes. Default: the leases of `subscriptions`. */
  readonly leases?: LeaseStore | undefined;
}

export interface MillraceOutboxOptions {
  /**
   * A URL, or a ledger, which closes with the application. If it is in the database of the checkpoints, messages and
   * checkpoint commit together. Default: the outbox of the store's engine.
   */
  readonly ledger?: string | OutboxLedger | undefined;
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

type OpenedRoles = Partial<Omit<MillraceRoles, typeof Symbol.asyncDispose>>;

interface Opened {
  readonly roles: OpenedRoles;
  readonly engines: AsyncDisposable;
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
  readonly store: EventStore | undefined;
  readonly subscriptions: SubscriptionStorage | undefined;
  readonly ledger: OutboxLedger | undefined;
  readonly delivery: Delivery | undefined;
  readonly dispatcher: OutboxDispatcher | undefined;
  readonly observer: Observer;
  readonly options: MillraceModuleOptions;
  readonly #discovery: Discovery;
  readonly #leases: LeaseStore | undefined;
  readonly #engines: AsyncDisposable;
  readonly #runners = new Map<string, SubscriptionRunner>();
  #closing: Promise<void> | undefined;

  private constructor(
    options: MillraceModuleOptions,
    discovery: Discovery,
    { roles, engines }: Opened,
  ) {
    const { observer = nestObserver() } = options;
    const outbox = outboxOf(options);
    this.options = options;
    this.observer = observer;
    this.store = roles.store;
    this.subscriptions = roles.subscriptions;
    this.ledger = roles.outbox;
    this.#leases = roles.leases;
    this.#engines = engines;
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
    const engines = new AsyncDisposableStack();
    try {
      const roles = await openRoles(options, engines);
      // A cheap query that needs the whole schema, so an unusable ledger fails at startup.
      await roles.outbox?.paused();
      return new MillraceRuntime(options, discovery, { roles, engines });
    } catch (error) {
      await engines.disposeAsync();
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
    const resources = [...destinationsOf(outboxOf(this.options)), this.#engines];
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
    const { subscriptions = [] } = this.options;
    const all = [
      ...handlerSubscriptions(methods, this.options),
      ...subscriptions.map((each) => this.#inContext(each)),
    ];
    for (const each of all) subscription(each);
    return all;
  }

  #projectors(): readonly OutboxProjectorDefinition[] {
    const methods = findMarkedMethods<MapToOutboxMark>(mapToOutboxKey, this.#discovery);
    const { projector = {}, projectors = [] } = outboxOf(this.options);
    const own = projectors.map((each) => this.#inContext(each));
    if (methods.length === 0) return own;
    const name = projector.name ?? projectorNameOf(this.options);
    return [{ ...projector, name, ...outboxMapping(methods, this.options.bc) }, ...own];
  }

  #inContext<
    Definition extends { readonly name: string; readonly filter?: EventFilter | undefined },
  >(each: Definition): Definition {
    const { name, filter = {} } = each;
    return { ...each, filter: contextFilter(filter, { name, bc: this.options.bc }) };
  }

  #project(each: OutboxProjectorDefinition): Promise<SubscriptionRunner> {
    const roles = { ...this.#roles(), outbox: needed('outbox', this.ledger) };
    return startOutboxProjector(roles, each, this.#runnerOptions());
  }

  #subscribe(each: SubscriptionDefinition): Promise<SubscriptionRunner> {
    return startSubscription(this.#roles(), subscription(each), this.#runnerOptions());
  }

  #roles(): SubscriptionRoles {
    const store = needed('store', this.store);
    if (this.subscriptions === undefined) throw noCheckpoints();
    return { store, subscriptions: this.subscriptions, leases: this.#leases };
  }

  #runnerOptions(): SubscriptionOptions {
    return { ...this.options.running, observer: this.observer };
  }
}

/** Opens the engines of URLs and takes the given roles; what closes with the application is added to the stack. */
async function openRoles(
  options: MillraceModuleOptions,
  opened: AsyncDisposableStack,
): Promise<OpenedRoles> {
  const { store: target, observer = nestObserver() } = options;
  const { ledger } = outboxOf(options);
  const isOutboxOff = options.outbox === false;
  if (target === undefined && ledger === undefined) {
    throw new MillraceError(
      'CONFIG_INVALID',
      "the module needs the option 'store', 'outbox.ledger', or both",
      { details: { field: 'store' } },
    );
  }
  for (const each of [target, ledger]) if (isDisposable(each)) opened.use(each);
  const engines = opened.use(
    createEngineSet(
      {
        urls: { store: urlOf(target), outbox: urlOf(ledger) },
        // Never required: a required role without an engine would be a local file, which other processes do not see.
        needs: { subscriptions: 'optional', outbox: isOutboxOff ? 'unused' : 'optional' },
      },
      { observer },
    ),
  );
  const open = async <Role extends keyof RoleMap>(role: Role): Promise<RoleMap[Role] | undefined> =>
    engines.has(role) ? engines.open(role) : undefined;

  async function openOutbox(): Promise<OutboxLedger | undefined> {
    if (isOutboxOff) return undefined;
    if (typeof ledger === 'object') return ledger;
    return ledger === undefined && typeof target === 'object' ? target.outbox : open('outbox');
  }

  if (target === undefined) return { outbox: await openOutbox() };
  if (typeof target === 'object') {
    const { store, subscriptions, leases } = checkRoles(target);
    return { store, subscriptions, leases, outbox: await openOutbox() };
  }
  const store = await engines.open('store');
  return { store, subscriptions: await open('subscriptions'), outbox: await openOutbox() };
}

function urlOf(target: unknown): string | undefined {
  return typeof target === 'string' ? target : undefined;
}

/** For factories without types: an event store is not an object of roles. */
function checkRoles(roles: MillraceRoles): MillraceRoles {
  if ((roles as Partial<MillraceRoles>).store !== undefined) return roles;
  throw new MillraceError(
    'CONFIG_INVALID',
    "the object in the option 'store' has no event store: pass the handle of an engine, or { store, subscriptions, … }",
    { details: { field: 'store' } },
  );
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

function noCheckpoints(): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    "the declared handlers need checkpoints, and the engine in the option 'store' cannot store them: set 'store' to roles, " +
      'such as { store: kurrent.store, subscriptions: postgres.subscriptions }',
    { details: { field: 'store', role: 'subscriptions' } },
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
