// The options of the module.

import type { DeliveryOptions } from '../delivery/create-delivery.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Deliver } from '../outbox/attempt-delivery.ts';
import type { OutboxDispatcherOptions } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { OutboxProjectorDefinition } from '../outbox/outbox-projector.ts';
import type { QueueDispatcherOptions } from '../outbox/queue-dispatcher.ts';
import type { QueueWorkerOptions } from '../outbox/queue-worker.ts';
import type { EventStore } from '../store/event-store.ts';
import type { SubscriptionOptions } from '../subscriptions/subscription-runner.ts';
import type { LeaseStore, SubscriptionStorage } from '../subscriptions/subscription-storage.ts';
import type { SubscriptionDefinition } from '../subscriptions/subscription.ts';
import type { WorkQueue } from '../work/work-queue.ts';
import type { HealthThresholds } from './decide-health.ts';

export interface MillraceModuleOptions {
  /** Kebab-case; derived subscription names start with it: `sub:<service>:…`. */
  readonly service?: string | undefined;
  /**
   * The bounded context of the application, such as `paymenthub`. Handlers and mappers read the events of their types in
   * its streams; a decorator with a `category` reads others.
   */
  readonly bc?: string | undefined;
  /** A URL, or roles, such as the handle of an engine. Default: `ESDB_CONNECTION_STRING`. */
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
  /** Default: Nest's logger. Metrics are also counted for `MillraceMetrics`. */
  readonly observer?: Observer | undefined;
  /** The variables of the outbox document (`OUTBOX_MAX_ATTEMPTS`, …). Options win. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
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
   * checkpoint commit together. A store without checkpoints, such as KurrentDB, has them in the database of a URL or
   * of a `TypeormOutboxRepository`. Default: the outbox of the store's engine.
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
  /** Delivery through queues: this process adds jobs and, if it has destinations, works on them. Default: direct. */
  readonly queue?: MillraceQueueOptions | undefined;
}

export interface MillraceQueueOptions
  extends
    Pick<QueueDispatcherOptions, 'perTenant' | 'prefix' | 'waitingMax'>,
    Pick<QueueWorkerOptions, 'types'> {
  /** A URL, or the queues of an engine. Default: `MILLRACE_QUEUE`, else Redis at `REDIS_HOST` and `REDIS_PORT`. */
  readonly queue?: string | WorkQueue | undefined;
}
