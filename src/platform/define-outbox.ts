// The definition of an outbox in `outbox.config.ts`: the parts that are code. URLs and tuning come from the environment.

import type { DeliveryOptions } from '../delivery/create-delivery.ts';
import type { Lifecycle } from '../foundation/lifecycle.ts';
import type { Observer } from '../foundation/observer.ts';
import type { OutboxDispatcherOptions } from '../outbox/outbox-dispatcher.ts';
import type { OutboxProjectorDefinition } from '../outbox/outbox-projector.ts';
import type { OutboxSettings } from './config/outbox-environment.ts';

/** Sends due messages until it is stopped. */
export interface OutboxSender extends Lifecycle {
  /** Resolves when no message is due. Without it, `whenDrained` is not supported. */
  whenIdle?(signal?: AbortSignal): Promise<void>;
}

export interface OutboxDefinition {
  /**
   * The bounded context of the projectors, such as `paymenthub`: they read its streams. A projector whose filter has
   * event types needs it, unless the filter names streams, too.
   */
  readonly bc?: string | undefined;
  /** From events to messages. Without projectors no event store is opened, and programs enqueue messages. */
  readonly projectors?: readonly OutboxProjectorDefinition[] | undefined;
  /** Disposable destinations are disposed when the outbox stops. */
  readonly destinations: DeliveryOptions['destinations'];
  readonly dispatcher?: Pick<
    OutboxDispatcherOptions,
    'concurrency' | 'drainMs' | 'leaseMs' | 'schedule' | 'timeoutMs'
  >;
  /** Sends due messages. Default: `createOutboxDispatcher`, in this process. */
  readonly sender?:
    | ((options: OutboxDispatcherOptions, settings: OutboxSettings) => OutboxSender)
    | undefined;
  /** Metrics and spans; also logs, instead of the default log. */
  readonly observer?: Observer | undefined;
}

/** A definition, or a function that creates it from the settings of the environment. */
export type OutboxModule =
  | OutboxDefinition
  | ((settings: OutboxSettings) => OutboxDefinition | Promise<OutboxDefinition>);

/**
 * Types the default export of `outbox.config.ts`, which `millrace outbox run` runs.
 *
 * @example
 * import { webhookDestination } from 'millrace/destinations/webhook';
 * import { defineOutbox } from 'millrace/platform';
 *
 * export default defineOutbox(({ webhookTimeoutMs }) => ({
 *   bc: 'paymenthub',
 *   projectors: [
 *     {
 *       name: 'sub:paymenthub:outbox:v1',
 *       mapper: {
 *         map: ({ type, aggregate }) => ({
 *           integrationType: 'webhook:partner-x',
 *           eventType: type,
 *           payload: { paymentId: aggregate.id },
 *         }),
 *       },
 *     },
 *   ],
 *   destinations: {
 *     webhook: webhookDestination({
 *       endpoint: {
 *         id: 'partner-x',
 *         url: 'https://partner.example/hook',
 *         secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
 *       },
 *       timeoutMs: webhookTimeoutMs,
 *     }),
 *   },
 * }));
 */
export function defineOutbox(module: OutboxModule): OutboxModule {
  return module;
}
