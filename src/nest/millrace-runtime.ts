// The engines and runners of the module, and the hooks with which Nest starts and stops them.

import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { buildSubscriptionName } from '../contracts/subscription-name.ts';
import type { Delivery } from '../delivery/create-delivery.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { OutboxDispatcher } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import {
  type OutboxProjectorDefinition,
  startOutboxProjector,
} from '../outbox/outbox-projector.ts';
import type { QueueDispatcher } from '../outbox/queue-dispatcher.ts';
import type { QueueWorker } from '../outbox/queue-worker.ts';
import {
  readOutboxEnvironment,
  type OutboxSettings,
} from '../platform/config/outbox-environment.ts';
import { withSettings } from '../platform/outbox-settings.ts';
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
import { createMetrics, type Metrics } from '../telemetry/create-metrics.ts';
import { combineObservers } from '../telemetry/create-telemetry.ts';
import { createSender } from './create-sender.ts';
import { type MapToOutboxMark, mapToOutboxKey, outboxMapping } from './map-to-outbox.ts';
import { findMarkedMethods } from './method-marks.ts';
import type { MillraceModuleOptions, MillraceOutboxOptions } from './millrace-options.ts';
import { nestObserver } from './nest-logger.ts';
import { type OnEventMark, handlerSubscriptions, onEventKey } from './on-event.ts';
import { isDisposable, openRoles, outboxOf, type OpenedRoles } from './open-roles.ts';

interface Opened {
  readonly roles: OpenedRoles;
  readonly engines: AsyncDisposable;
  readonly settings: OutboxSettings;
  readonly metrics: Metrics;
  readonly observer: Observer;
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
  /** A `QueueDispatcher` with the option `outbox.queue`. */
  readonly dispatcher: OutboxDispatcher | QueueDispatcher | undefined;
  /** Sends the messages of the queues; undefined without the option `outbox.queue`. */
  readonly worker: QueueWorker | undefined;
  readonly metrics: Metrics;
  readonly observer: Observer;
  readonly options: MillraceModuleOptions;
  readonly #discovery: Discovery;
  readonly #leases: LeaseStore | undefined;
  readonly #engines: AsyncDisposable;
  readonly #settings: OutboxSettings;
  readonly #runners = new Map<string, SubscriptionRunner>();
  #closing: Promise<void> | undefined;

  private constructor(
    options: MillraceModuleOptions,
    discovery: Discovery,
    { roles, engines, settings, metrics, observer }: Opened,
  ) {
    this.options = options;
    this.observer = observer;
    this.metrics = metrics;
    this.store = roles.store;
    this.subscriptions = roles.subscriptions;
    this.ledger = roles.outbox;
    this.#leases = roles.leases;
    this.#engines = engines;
    this.#discovery = discovery;
    this.#settings = settings;
    const { outbox: ledger, queue } = roles;
    const sender = createSender(outboxOf(options), { ledger, queue, settings, observer });
    this.delivery = sender.delivery;
    this.dispatcher = sender.dispatcher;
    this.worker = sender.worker;
  }

  /** Opens the engines of the options; if one fails, closes the others. */
  static async open(
    options: MillraceModuleOptions,
    discovery: Discovery,
  ): Promise<MillraceRuntime> {
    const engines = new AsyncDisposableStack();
    const metrics = createMetrics();
    const observer = combineObservers(metrics.observer, options.observer ?? nestObserver());
    try {
      const settings = readOutboxEnvironment(options.env ?? process.env);
      const roles = await openRoles(options, { settings, observer }, engines);
      // A cheap query that needs the whole schema, so an unusable ledger fails at startup.
      await roles.outbox?.paused();
      const opened = { roles, engines, settings, metrics, observer };
      return new MillraceRuntime(options, discovery, opened);
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
      await this.worker?.start();
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  /** Finishes running handlers and leaves the rest to other processes. Requests may still append. */
  async beforeApplicationShutdown(): Promise<void> {
    const running = [...this.#runners.values(), this.dispatcher, this.worker].filter(
      (each) => each !== undefined,
    );
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
    const given = projectors.map((each) => withSettings(this.#inContext(each), this.#settings));
    if (methods.length === 0) return given;
    const name = projector.name ?? projectorNameOf(this.options);
    const mapped = { ...projector, name, ...outboxMapping(methods, this.options.bc) };
    return [withSettings(mapped, this.#settings), ...given];
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

/** Without duplicates: a destination may serve several integration types. */
function destinationsOf({ destinations = {} }: MillraceOutboxOptions): ReadonlySet<unknown> {
  const all = Object.values(destinations);
  return new Set(all.map((each) => (typeof each === 'function' ? each : each.send)));
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
    "the declared handlers need checkpoints, and the engine in the option 'store' cannot store them: set 'outbox.ledger' to " +
      "a URL or a TypeormOutboxRepository, whose database then has them, or set 'store' to roles, such as " +
      '{ store: kurrent.store, subscriptions: postgres.subscriptions }',
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
