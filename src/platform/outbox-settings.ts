// Applies the outbox settings of the environment, for `startOutbox` and the platform.

import {
  createDelivery,
  type Delivery,
  type DestinationSettings,
} from '../delivery/create-delivery.ts';
import type { Destination } from '../delivery/destination.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { deadLetterMessage } from '../outbox/dead-letter-message.ts';
import type { OutboxDispatcherOptions } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { OutboxProjectorDefinition } from '../outbox/outbox-projector.ts';
import { namesTypes } from '../store/event-filter.ts';
import type { OnDead } from '../outbox/report-outcome.ts';
import type { OutboxSettings } from './config/outbox-environment.ts';

interface SendingTelemetry {
  readonly observer: Observer;
  readonly clock?: Clock | undefined;
}

type SendingOptions = Pick<
  OutboxDispatcherOptions,
  'batchSize' | 'clock' | 'deliver' | 'ledger' | 'observer' | 'onDead' | 'tickIntervalMs'
>;

type Destinations = Readonly<Record<string, Destination | DestinationSettings>>;

/** `ESDB_SUBSCRIPTION_PREFIX` limits a projector whose filter names no event types. */
export function withSettings(
  projector: OutboxProjectorDefinition,
  { typePrefixes }: Pick<OutboxSettings, 'typePrefixes'>,
): OutboxProjectorDefinition {
  const { filter = {} } = projector;
  if (typePrefixes.length === 0 || namesTypes(filter)) return projector;
  return { ...projector, filter: { ...filter, typePrefixes } };
}

/**
 * The sender by these settings. Throws early if the dead-letter topic has no destination, instead of when the first
 * message becomes dead.
 */
export function sendingBy(
  settings: OutboxSettings,
  destinations: Destinations,
  telemetry: SendingTelemetry,
): {
  readonly delivery: Delivery;
  readonly optionsFor: (ledger: OutboxLedger) => SendingOptions;
} {
  const deadLetters = deadLettersTo(settings, Object.keys(destinations));
  const { batchSize, tickIntervalMs, webhookTimeoutMs } = settings;
  const limited = withWebhookTimeouts(destinations, webhookTimeoutMs);
  const delivery = createDelivery({ destinations: limited, ...telemetry });
  const { deliver } = delivery;
  return {
    delivery,
    optionsFor: (ledger) => ({
      ledger,
      deliver,
      batchSize,
      tickIntervalMs,
      ...telemetry,
      ...deadLetters(ledger),
    }),
  };
}

function withWebhookTimeouts(destinations: Destinations, timeoutMs: number): Destinations {
  return Object.fromEntries(
    Object.entries(destinations).map(([name, each]) => {
      const settings: DestinationSettings = typeof each === 'function' ? { send: each } : each;
      return [name, name.split(':', 1)[0] === 'webhook' ? { timeoutMs, ...settings } : settings];
    }),
  );
}

/** Enqueues a message for each dead message. Without a list of destinations, every type has one. */
export function deadLettersTo(
  { deadLetterTopic }: Pick<OutboxSettings, 'deadLetterTopic'>,
  destinations?: readonly string[],
): (ledger: OutboxLedger) => { readonly onDead?: OnDead } {
  if (deadLetterTopic === undefined) return () => ({});
  const type = deadLetterTopic.includes(':') ? deadLetterTopic : `kafka:${deadLetterTopic}`;
  const [kind = ''] = type.split(':', 1);
  const hasDestination = (name: string): boolean => destinations?.includes(name) !== false;
  if (hasDestination(type) || hasDestination(kind)) {
    return (ledger) => ({
      onDead: async (message, error) =>
        void (await ledger.enqueueMany(deadLetterMessage(message, error, type))),
    });
  }
  throw new MillraceError(
    'CONFIG_INVALID',
    `OUTBOX_DEADLETTER_TOPIC needs a destination '${kind}' (or '${type}'), and there is none: add it, name another one as in webhook:dead, or unset the variable`,
    { details: { field: 'OUTBOX_DEADLETTER_TOPIC' } },
  );
}
