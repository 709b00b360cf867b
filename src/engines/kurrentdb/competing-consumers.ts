// Competing consumers on KurrentDB's persistent subscriptions. The server stores the position of the group, delivers
// every event to one consumer at a time, and redelivers it if it is not settled.

import type { MillraceError } from '../../foundation/error.ts';
import { compileFilter, type EventFilter } from '../../store/event-filter.ts';
import type { SubjectKeys } from '../../store/erasure.ts';
import { decodeReadable, type RecordedEvent } from '../../store/recorded-event.ts';
import { fromClientRecord } from './event-record.ts';
import type { Client } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { isKind } from './errors.ts';
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
  readonly subjectKeys: SubjectKeys;
  readonly names: 'strict' | 'open';
  readonly onFailure: (error: unknown) => void;
}

type Subscription = ReturnType<Client['subscribeToPersistentSubscriptionToAll']>;

/** Delivers events until the signal is aborted or the consumer leaves the loop; reconnects after an outage. */
export function consumeGroup(
  parts: ConsumeParts,
  options: ConsumeOptions,
): AsyncGenerator<Delivery, void, undefined> {
  const { connection, names } = parts;
  const { signal } = options;
  const open = async (client: Client) => {
    await connection.use((any) => createGroup(any, options, names), signal);
    const subscription = subscribe(client, options);
    return { subscription, items: deliveries(subscription, parts, options) };
  };
  const onFailure = (failure: MillraceError): void => {
    if (!failure.retryable) throw failure;
    parts.onFailure(failure);
  };
  return connection.follow(open, { signal, onFailure });
}

async function* deliveries(
  subscription: Subscription,
  { subjectKeys }: ConsumeParts,
  { stream, filter: given }: ConsumeOptions,
): AsyncGenerator<Delivery, void, undefined> {
  const filter = compileFilter({ system: stream !== undefined, ...given });
  // The buffer of the Readable is bounded: the server limits the number of unsettled events.
  for await (const item of subscription) {
    const nack = (action: 'park' | 'retry' | 'skip') => (reason: string) =>
      subscription.nack(action, reason, item);
    const { event, retryCount } = item;
    const row = event === undefined ? undefined : fromClientRecord(event);
    const rows = row !== undefined && isWanted(filter, row) ? [row] : [];
    const [recorded] = await decodeReadable(rows, subjectKeys);
    if (recorded === undefined) await subscription.ack(item);
    else if (recorded.unreadable !== undefined) await nack('park')(recorded.unreadable);
    else {
      yield {
        event: recorded,
        attempt: retryCount + 1,
        ack: () => subscription.ack(item),
        retry: nack('retry'),
        park: nack('park'),
        skip: nack('skip'),
      };
    }
  }
}

function subscribe(
  client: Client,
  { stream, group, inFlightMax: bufferSize = 10 }: ConsumeOptions,
): Subscription {
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
    startFrom: from,
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
      await client.createPersistentSubscriptionToStream(stream, group, settings);
      return;
    }
    const { server } = pushDown(compileFilter(options.filter), names);
    const filtering = server === undefined ? {} : { filter: server };
    await client.createPersistentSubscriptionToAll(group, settings, filtering);
  } catch (error) {
    if (!isKind(error, 'persistent-subscription-exists')) throw error;
  }
}
