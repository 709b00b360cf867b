// Everything that the module opened and runs, and the hooks by which Nest starts and ends it.

import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { buildSubscriptionName } from '../contracts/subscription-name.ts';
import { createDelivery, type Delivery } from '../delivery/create-delivery.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Deliver } from '../outbox/attempt-delivery.ts';
import { createOutboxDispatcher, type OutboxDispatcher } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import {
  startOutboxProjector,
  type OutboxProjectorDefinition,
} from '../outbox/outbox-projector.ts';
import { openEventStore } from '../platform/engines/open-event-store.ts';
import { openOutboxLedger } from '../platform/engines/open-outbox-ledger.ts';
import type { EventStore } from '../store/event-store.ts';
import {
  startSubscription,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import { subscription, type SubscriptionDefinition } from '../subscriptions/subscription.ts';
import type { SubscriptionHost } from '../subscriptions/subscription-storage.ts';
import { handlerSubscriptions } from './handler-subscriptions.ts';
import { mapToOutboxKey, type MapToOutboxMark } from './map-to-outbox.ts';
import { findMarkedMethods } from './method-marks.ts';
import type { MillraceModuleOptions, MillraceOutboxOptions } from './millrace-options.ts';
import { nestObserver } from './nest-logger.ts';
import { onEventKey, type OnEventMark } from './on-event.ts';
import { outboxMapping } from './outbox-mapping.ts';

type Store = EventStore & Partial<SubscriptionHost>;

interface Opened {
  readonly store: Store | undefined;
  readonly ledger: OutboxLedger | undefined;
}

interface Finding {
  readonly discovery: DiscoveryService;
  readonly scanner: MetadataScanner;
}

/**
 * What runs in this process; inject it to wait for subscriptions, or to look at them.
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
  readonly #finding: Finding;
  readonly #runners = new Map<string, SubscriptionRunner>();
  #closing: Promise<void> | undefined;

  private constructor(options: MillraceModuleOptions, finding: Finding, opened: Opened) {
    const { observer = nestObserver() } = options;
    const outbox = outboxOf(options);
    this.options = options;
    this.observer = observer;
    this.store = opened.store;
    this.ledger = opened.ledger;
    this.#finding = finding;
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

  /** Opens what the options name; what was opened is closed again when the rest cannot be. */
  static async open(options: MillraceModuleOptions, finding: Finding): Promise<MillraceRuntime> {
    const { store: storePlace, observer = nestObserver() } = options;
    const ledgerPlace = ledgerPlaceOf(options);
    if (storePlace === undefined && ledgerPlace === undefined) {
      throw new MillraceError('CONFIG_INVALID', 'the module needs a store, a ledger, or both', {
        details: { field: 'store' },
      });
    }
    const store =
      typeof storePlace === 'string' ? await openEventStore(storePlace, { observer }) : storePlace;
    let ledger: OutboxLedger | undefined;
    try {
      ledger =
        typeof ledgerPlace === 'string'
          ? await openOutboxLedger(ledgerPlace, { observer })
          : ledgerPlace;
      // Small, and answered by all of the schema: one that cannot work is told now, not when it is needed.
      await ledger?.paused();
      return new MillraceRuntime(options, finding, { store, ledger });
    } catch (error) {
      await ledger?.[Symbol.asyncDispose]();
      await store?.[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** By name: those of `@OnEvent`, of the options, and the projectors of the outbox. */
  get runners(): ReadonlyMap<string, SubscriptionRunner> {
    return this.#runners;
  }

  /** Nest calls it when all modules are there. What cannot run is told before anything does. */
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

  /** What is under way comes to its end, and the rest is left to others. Requests may still append. */
  async beforeApplicationShutdown(): Promise<void> {
    const running = [...this.#runners.values(), ...(this.dispatcher ? [this.dispatcher] : [])];
    const ends = await Promise.allSettled(running.map((each) => each.stop()));
    for (const end of ends) {
      if (end.status === 'rejected') this.observer.log?.error({ err: end.reason }, 'stop failed');
    }
  }

  /** The requests are over. */
  async onApplicationShutdown(): Promise<void> {
    await this.#close();
  }

  #close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    await this.beforeApplicationShutdown();
    const held = [...destinationsOf(outboxOf(this.options)), this.ledger, this.store];
    for (const each of held.filter(isDisposable)) {
      try {
        await each[Symbol.asyncDispose]();
      } catch (err) {
        this.observer.log?.error({ err }, 'close failed');
      }
    }
  }

  #subscriptions(): readonly SubscriptionDefinition[] {
    const methods = findMarkedMethods<OnEventMark>(onEventKey, this.#finding);
    const { service, subscriptions = [] } = this.options;
    const all = [...handlerSubscriptions(methods, service), ...subscriptions];
    for (const each of all) subscription(each);
    return all;
  }

  #projectors(): readonly OutboxProjectorDefinition[] {
    const methods = findMarkedMethods<MapToOutboxMark>(mapToOutboxKey, this.#finding);
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

/** One may serve several integration types. */
function destinationsOf({ destinations = {} }: MillraceOutboxOptions): ReadonlySet<unknown> {
  const all = Object.values(destinations);
  return new Set(all.map((each) => (typeof each === 'function' ? each : each.send)));
}

function isDisposable(value: unknown): value is AsyncDisposable {
  return Object(value) === value && Symbol.asyncDispose in (value as object);
}

function ledgerPlaceOf(options: MillraceModuleOptions): string | OutboxLedger | undefined {
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
  return typeof options.store === 'string' && ledgerPlaceOf(options) === options.store;
}

function projectorNameOf({ service }: MillraceModuleOptions): string {
  return buildSubscriptionName(needed('service', service), 'outbox', 1);
}

function needed<T>(field: 'outbox' | 'service' | 'store', value: T | undefined): T {
  if (value !== undefined) return value;
  throw new MillraceError('CONFIG_INVALID', `what the application declares needs the ${field}`, {
    details: { field },
  });
}

function checkNames(all: readonly { readonly name: string }[]): void {
  const seen = new Set<string>();
  for (const { name } of all) {
    if (seen.has(name)) {
      throw new MillraceError('SUBSCRIPTION_INVALID', `'${name}' is the name of two`, {
        details: { name },
      });
    }
    seen.add(name);
  }
}
