// From events to the ledger: a subscription. In a shared database, its rows commit together with its checkpoint;
// otherwise repeated rows are detected as duplicates.

import { hasCode } from '../foundation/error.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { isForgotten } from '../store/erasure.ts';
import { everyEventOf, followErasures } from '../store/follow-erasures.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { Terminal } from '../foundation/handler-outcome.ts';
import { safeObserver } from '../foundation/safe-observer.ts';
import {
  startSubscription,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import {
  subscription,
  type BatchContext,
  type Caused,
  type SubscriptionDefinition,
} from '../subscriptions/subscription.ts';
import type { SubscriptionRoles } from '../subscriptions/subscription-storage.ts';
import { logOutbox, observeEnqueue } from './observe-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { Enqueued, OutboxLedger } from './outbox-ledger.ts';
import type { EnqueueOutboxProps } from './outbox-message.ts';

/**
 * The result of a mapper. Stream and event are those of the event; so are tenant, user and correlation, unless the
 * mapper sets them.
 */
export type IntegrationMessage = Omit<EnqueueOutboxProps, 'sourceEventId' | 'sourceStreamId'>;

/** Returns the outgoing messages of an event, if any. */
export interface IntegrationEventMapper {
  map(event: RecordedEvent): readonly IntegrationMessage[] | IntegrationMessage | null | undefined;
}

export interface OutboxProjectorDefinition extends Pick<
  SubscriptionDefinition,
  'batchSize' | 'filter' | 'from' | 'inFlightMax' | 'lanes' | 'onDeadLetter' | 'retry' | 'shards'
> {
  /** `sub:<service>:<name>:v<n>`. */
  readonly name: string;
  readonly mapper: IntegrationEventMapper;
}

/**
 * What a projector reads and stores. If checkpoints and outbox are in one database, as those of one handle are, messages
 * and checkpoint are one commit.
 */
export interface OutboxProjectorRoles<
  Transaction = unknown,
> extends SubscriptionRoles<Transaction> {
  readonly outbox: OutboxLedger<never>;
}

/**
 * Runs a projector from its checkpoint, then live, until it is stopped. While the ledger is unavailable it waits;
 * a message that the ledger rejects makes its event a dead letter.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { startOutboxProjector } from 'millrace/outbox';
 *
 * await using db = openMemory();
 * await using projector = await startOutboxProjector(db, {
 *   name: 'sub:paymenthub:outbox:v1',
 *   filter: { typePrefixes: ['payment.'] },
 *   mapper: {
 *     map: ({ type, aggregate }) => ({
 *       integrationType: 'kafka:payments',
 *       eventType: type,
 *       payload: { paymentId: aggregate.id },
 *       orderingKey: aggregate.id,
 *     }),
 *   },
 * });
 * await projector.whenCaughtUp();
 */
export function startOutboxProjector<Transaction>(
  roles: OutboxProjectorRoles<Transaction>,
  { mapper, ...definition }: OutboxProjectorDefinition,
  options: SubscriptionOptions = {},
): Promise<SubscriptionRunner> {
  const { outbox, subscriptions } = roles;
  const erasures = followErasures(definition.filter);
  const isOneDatabase = outbox.database !== undefined && outbox.database === subscriptions.database;
  const observer = safeObserver(options.observer ?? silentObserver);
  const each = subscription<Transaction>({
    ...definition,
    filter: erasures.filter,
    async batchHandler(events, context) {
      const { own, erasedStreams } = erasures.split(events);
      const items = own.flatMap((event) =>
        toMessages(mapper, event, context.causedBy(event), events.length),
      );
      for (let at = 0; at < items.length; at += limits.enqueueMax) {
        await enqueue(items.slice(at, at + limits.enqueueMax), context, events.length);
      }
      for (const stream of erasedStreams) await eraseMessages(roles, stream);
    },
  });

  async function enqueue(
    messages: readonly EnqueueOutboxProps[],
    context: BatchContext<Transaction>,
    eventCount: number,
  ): Promise<void> {
    const report = reporterOf(observer, definition.name);
    const { items, ended, failed } = observeEnqueue(observer, messages);
    report('START', items);
    let enqueued: readonly Enqueued[];
    try {
      enqueued = isOneDatabase
        ? // An outbox of the same database takes the transactions of that database.
          await outbox.enqueueIn((await context.transaction()) as never, items)
        : await outbox.enqueueMany(items);
    } catch (error) {
      report('ERROR', items, { err: error });
      failed(error);
      throw asTerminal(error, eventCount);
    }
    const isDuplicate = (_item: EnqueueOutboxProps, at: number): boolean =>
      enqueued[at]?.isDuplicate !== false;
    for (const [at, item] of items.entries())
      ended(at, isDuplicate(item, at) ? 'duplicate' : 'new');
    report(
      'SUCCESS',
      items.filter((item, at) => !isDuplicate(item, at)),
    );
    report('DUPLICATE', items.filter(isDuplicate));
  }

  return startSubscription(roles, each, options);
}

/** Erases the messages of all events whose payload was erased. */
async function eraseMessages(
  { store, outbox }: Pick<OutboxProjectorRoles, 'outbox' | 'store'>,
  stream: string,
): Promise<void> {
  for await (const page of everyEventOf(store, stream)) {
    for (const { payload, eventId } of page) {
      if (!isForgotten(payload)) continue;
      await outbox.erase([{ sourceStreamId: stream, sourceEventId: eventId }], payload);
    }
  }
}

function toMessages(
  mapper: IntegrationEventMapper,
  event: RecordedEvent,
  caused: Caused,
  eventCount: number,
): readonly EnqueueOutboxProps[] {
  // The person's data was erased: nothing of it may be sent.
  if (isForgotten(event.payload)) return [];
  let mapped: ReturnType<IntegrationEventMapper['map']>;
  try {
    mapped = mapper.map(event);
  } catch (error) {
    // A retry of this event would fail again, but the other events of the batch must not become dead letters.
    if (eventCount > 1) throw error;
    throw new Terminal(`the mapper failed: ${String(error)}`, { cause: error });
  }
  return listOf(mapped).map((message) => ({
    ...message,
    sourceStreamId: event.stream,
    sourceEventId: event.eventId,
    headers: { ...caused.headers, idempotencyKey: event.eventId, ...message.headers },
    correlationId: message.correlationId ?? event.correlationId,
    tenantId: message.tenantId ?? nonEmpty(event.tenant),
    userId: message.userId ?? nonEmpty(event.user?.id),
  }));
}

/** An event of another service may name no tenant: the column is null then. */
function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function listOf(mapped: ReturnType<IntegrationEventMapper['map']>): readonly IntegrationMessage[] {
  if (mapped === undefined || mapped === null) return [];
  return isList(mapped) ? mapped : [mapped];
}

function isList(
  mapped: readonly IntegrationMessage[] | IntegrationMessage,
): mapped is readonly IntegrationMessage[] {
  return Array.isArray(mapped);
}

/** An invalid message stays invalid: its event, processed alone, becomes a dead letter immediately. */
function asTerminal(error: unknown, eventCount: number): unknown {
  const isRejected =
    hasCode(error, 'OUTBOX_INVALID') ||
    hasCode(error, 'PAYLOAD_NOT_JSON') ||
    hasCode(error, 'PAYLOAD_TOO_LARGE');
  if (!isRejected || eventCount > 1) return error;
  return new Terminal(`the outbox rejected the message: ${error.message}`, { cause: error });
}

function reporterOf(observer: Observer, source: string) {
  return (
    phase: 'START' | 'SUCCESS' | 'DUPLICATE' | 'ERROR',
    items: readonly EnqueueOutboxProps[],
    more: object = {},
  ): void => {
    if (phase === 'SUCCESS' && items.length > 0) {
      observer.count?.('outbox_enqueued_total', { source }, items.length);
    }
    for (const item of items) {
      const { sourceEventId: eventId, integrationType } = item;
      const what = { source, operation: 'OUTBOX_ENQUEUE', phase } as const;
      logOutbox(observer, what, item, { eventId, integrationType, ...more });
    }
  };
}
