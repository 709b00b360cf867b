// Competing consumers on KurrentDB's persistent subscriptions. The server stores the position of the group, delivers
// every event to one consumer at a time, and redelivers it if it is not settled.

import { slept } from '../../foundation/async/slept.ts';
import type { Clock } from '../../foundation/clock.ts';
import { compileFilter, type EventFilter } from '../../store/event-filter.ts';
import type { RecordedEvent, StoredRow } from '../../store/recorded-event.ts';
import { fromClientRecord } from './event-record.ts';
import { itemsOf, type Client, type ClientRecord } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { isKind, isTransient, unavailable } from './errors.ts';
import { isWanted, pushDown } from './push-down.ts';

export interface ConsumeOptions {
  /** Consumers with the same name share the work. The first one creates the group. */
  readonly group: string;
  /** The stream whose events are delivered. Default: all events that the filter accepts. */
  readonly stream?: string | undefined;
  /** The filter of the group, fixed when the group is created. */
  readonly filter?: EventFilter | undefined;
  /** Where the group starts, fixed when the group is created. Default: `start`. */
  readonly from?: 'start' | 'end' | undefined;
  /** How events are distributed: round robin (default), to one consumer, or every stream to the same consumer. */
  readonly strategy?:
    | 'RoundRobin'
    | 'DispatchToSingle'
    | 'Pinned'
    | 'PinnedByCorrelation'
    | undefined;
  /** The most unsettled events of this consumer. Default: 10. */
  readonly inFlightMax?: number | undefined;
  /** After this number of deliveries an event is parked. Default: 10. */
  readonly attemptsMax?: number | undefined;
  /** An event that is unsettled for this time is redelivered. Default: 30,000. */
  readonly settleWithinMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Delivery {
  readonly event: RecordedEvent;
  /** The number of this delivery, from 1. */
  readonly attempt: number;
  readonly ack: () => Promise<void>;
  /** Redelivers the event. */
  readonly retry: (reason: string) => Promise<void>;
  /** Moves the event to the parked events of the group, which the server can replay. */
  readonly park: (reason: string) => Promise<void>;
  readonly skip: (reason: string) => Promise<void>;
}

export interface ConsumeParts {
  readonly connection: KurrentdbConnection;
  readonly decode: (rows: readonly StoredRow[]) => Promise<readonly RecordedEvent[]>;
  readonly names: 'strict' | 'open';
  readonly clock: Clock;
  readonly onFailure: (error: unknown) => void;
}

const pauseMs = { first: 50, max: 2_000 } as const;

/** Delivers events until the signal is aborted or the consumer leaves the loop; reconnects after an outage. */
export async function* consumeGroup(
  parts: ConsumeParts,
  options: ConsumeOptions,
): AsyncGenerator<Delivery, void, undefined> {
  const { signal } = options;
  const isAborted = (): boolean => signal?.aborted === true;
  for (let failures = 1; ; failures += 1) {
    try {
      for await (const delivery of deliveries(parts, options)) {
        failures = 0;
        yield delivery;
      }
      if (isAborted()) return;
    } catch (error) {
      if (isAborted()) return;
      if (!isTransient(error)) throw unavailable(error);
      parts.onFailure(error);
    }
    const sleepMs = Math.min(pauseMs.max, pauseMs.first * 2 ** failures);
    if (!(await slept(parts.clock, sleepMs, signal))) return;
  }
}

type Subscription = ReturnType<Client['subscribeToPersistentSubscriptionToAll']>;
type Delivered = Parameters<Subscription['ack']>[0];

async function* deliveries(
  parts: ConsumeParts,
  options: ConsumeOptions,
): AsyncGenerator<Delivery, void, undefined> {
  const { connection, names } = parts;
  const { signal, inFlightMax = 10 } = options;
  const filter = compileFilter({ system: options.stream !== undefined, ...options.filter });
  await connection.use((client) => createGroup(client, options, names), signal);
  const subscription = await connection.use(
    async (client) => open(client, options, inFlightMax),
    signal,
  );
  // The buffer of the Readable is bounded: the server limits the number of unsettled events.
  for await (const delivered of itemsOf(subscription, signal)) {
    const { event, retryCount } = delivered as {
      readonly event?: ClientRecord;
      readonly retryCount?: number;
    };
    const row = event === undefined ? undefined : fromClientRecord(event);
    const [recorded] = row !== undefined && isWanted(filter, row) ? await parts.decode([row]) : [];
    if (recorded === undefined) await subscription.ack(delivered);
    else if (recorded.unreadable !== undefined)
      await subscription.nack('park', recorded.unreadable, delivered);
    else yield toDelivery(subscription, delivered, { event: recorded, retryCount });
  }
}

function toDelivery(
  subscription: Subscription,
  delivered: Delivered,
  {
    event,
    retryCount = 0,
  }: { readonly event: RecordedEvent; readonly retryCount?: number | undefined },
): Delivery {
  const nack = (action: 'park' | 'retry' | 'skip') => async (reason: string) => {
    await subscription.nack(action, reason, delivered);
  };
  return {
    event,
    attempt: retryCount + 1,
    ack: () => subscription.ack(delivered),
    retry: nack('retry'),
    park: nack('park'),
    skip: nack('skip'),
  };
}

function open(client: Client, { stream, group }: ConsumeOptions, bufferSize: number): Subscription {
  const opened =
    stream === undefined
      ? client.subscribeToPersistentSubscriptionToAll(group, { bufferSize })
      : client.subscribeToPersistentSubscriptionToStream(stream, group, { bufferSize });
  return opened as Subscription;
}

async function createGroup(
  client: Client,
  options: ConsumeOptions,
  names: 'strict' | 'open',
): Promise<void> {
  const { group, stream, from = 'start', attemptsMax = 10, settleWithinMs = 30_000 } = options;
  const settings = {
    resolveLinkTos: false,
    extraStatistics: false,
    messageTimeout: settleWithinMs,
    maxRetryCount: attemptsMax,
    checkPointAfter: 2_000,
    checkPointLowerBound: 10,
    checkPointUpperBound: 1_000,
    maxSubscriberCount: 'unbounded',
    liveBufferSize: 500,
    readBatchSize: 20,
    historyBufferSize: 500,
    consumerStrategyName: options.strategy ?? 'RoundRobin',
  } as const;
  try {
    if (stream !== undefined) {
      const toStream = { ...settings, startFrom: from };
      await client.createPersistentSubscriptionToStream(stream, group, toStream);
      return;
    }
    const { server } = pushDown(compileFilter(options.filter), names);
    await client.createPersistentSubscriptionToAll(
      group,
      { ...settings, startFrom: from },
      server === undefined ? {} : { filter: server },
    );
  } catch (error) {
    if (!isKind(error, 'persistent-subscription-exists')) throw error;
  }
}
