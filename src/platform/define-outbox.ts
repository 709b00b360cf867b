// What a program tells of its outbox, in `outbox.config.ts`: everything that is code. Where things are, and
// how fast, comes from the environment.

import type { DeliveryOptions } from '../delivery/create-delivery.ts';
import type { Lifecycle } from '../foundation/lifecycle.ts';
import type { Observer } from '../foundation/observer.ts';
import type { OutboxDispatcherOptions } from '../outbox/outbox-dispatcher.ts';
import type { OutboxProjectorDefinition } from '../outbox/outbox-projector.ts';
import type { OutboxSettings } from './config/outbox-environment.ts';

/** Sends what is due, until it is stopped. */
export interface OutboxSender extends Lifecycle {
  /** Resolves when nothing is due any more. Without it, nobody can wait for that. */
  whenIdle?(signal?: AbortSignal): Promise<void>;
}

export interface OutboxDefinition {
  /** From events to messages. Without any, no event store is opened: programs enqueue by themselves. */
  readonly projectors?: readonly OutboxProjectorDefinition[];
  /** Those that can be disposed of are, in the end. */
  readonly destinations: DeliveryOptions['destinations'];
  readonly dispatcher?: Pick<
    OutboxDispatcherOptions,
    'concurrency' | 'drainMs' | 'leaseMs' | 'schedule' | 'timeoutMs'
  >;
  /** How what is due is sent. Default: by this process, `createOutboxDispatcher`. */
  readonly sender?: (options: OutboxDispatcherOptions, settings: OutboxSettings) => OutboxSender;
  /** Metrics and spans; logs go to whoever runs it, unless they are taken here. */
  readonly observer?: Observer;
}

/** A definition, or who makes it of what the environment says. */
export type OutboxModule =
  | OutboxDefinition
  | ((settings: OutboxSettings) => OutboxDefinition | Promise<OutboxDefinition>);

/**
 * Types the default export of `outbox.config.ts`, which `millrace outbox run` runs.
 *
 * @example
 * import { webhookDestination } from 'millrace/adapters/webhook';
 * import { defineOutbox } from 'millrace/platform';
 *
 * export default defineOutbox(({ webhookTimeoutMs }) => ({
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
