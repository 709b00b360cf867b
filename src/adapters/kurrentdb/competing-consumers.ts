// Competing consumers: a group of KurrentDB's persistent subscriptions. The server keeps the group's
// place, hands every event to one consumer at a time, and again if it is not settled.

import { aborted, type Clock } from '../../foundation/clock.ts';
import { compileFilter, type EventFilter } from '../../store/event-filter.ts';
import type { RecordedEvent, StoredRow } from '../../store/recorded-event.ts';
import { fromClientRecord } from './event-record.ts';
import type { Client, ClientRecord } from './kurrentdb-client.ts';
import type { KurrentdbConnection } from './kurrentdb-connection.ts';
import { isKind, isTransient, unavailable } from './kurrentdb-error.ts';
import { isKeyStream } from './kurrentdb-keys.ts';
import { isWanted, pushDown } from './push-down.ts';

export interface ConsumeOptions {
  /** Consumers with one name share the work. The group is made by the first of them. */
  readonly group: string;
  /** Only this stream's events; else all, or those that the filter takes. */
  readonly stream?: string;
  /** Fixed when the group is made. */
  readonly filter?: EventFilter;
  /** Fixed when the group is made. Default: `start`. */
  readonly from?: 'start' | 'end';
  /** How the group shares: in turn (default), one consumer only, or a stream always to the same. */
  readonly strategy?: 'RoundRobin' | 'DispatchToSingle' | 'Pinned' | 'PinnedByCorrelation';
  /** Events that this consumer holds unsettled at most. Default: 10. */
  readonly inFlightMax?: number;
  /** After so many deliveries an event is parked. Default: 10. */
  readonly attemptsMax?: number;
  /** Unsettled for so long, an event is given to another consumer. Default: 30,000. */
  readonly settleWithinMs?: number;
  readonly signal?: AbortSignal;
}

export interface Delivery {
  readonly event: RecordedEvent;
  /** 1 the first time. */
  readonly attempt: number;
  readonly ack: () => Promise<void>;
  /** To be given out again. */
  readonly retry: (reason: string) => Promise<void>;
  /** Set aside in the group's parked events, from where the server can replay it. */
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

/** Ends with its signal, or when its loop is left; a server that is away for a while is waited for. */
export async function* consumeGroup(
  parts: ConsumeParts,
  options: ConsumeOptions,
): AsyncGenerator<Delivery, void, undefined> {
  const { signal } = options;
  const isLeft = (): boolean => signal?.aborted === true;
  for (let failures = 1; ; failures += 1) {
    try {
      for await (const delivery of deliveries(parts, options)) {
        failures = 0;
        yield delivery;
      }
      if (isLeft()) return;
    } catch (error) {
      if (isLeft()) return;
      if (!isTransient(error)) throw unavailable(error);
      parts.onFailure(error);
    }
    try {
      await parts.clock.sleep(Math.min(pauseMs.max, pauseMs.first * 2 ** failures), signal);
    } catch (error) {
      if (isLeft()) return;
      throw error;
    }
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
  const leave = (): void => void subscription.destroy(aborted(signal));
  signal?.addEventListener('abort', leave, { once: true });
  try {
    // The Readable is pulled: what waits in it is bounded by what the server sends unsettled.
    for await (const delivered of subscription) {
      const { event, retryCount } = delivered as {
        readonly event?: ClientRecord;
        readonly retryCount?: number;
      };
      const read = event === undefined ? undefined : fromClientRecord(event);
      const isOurs = read !== undefined && !isKeyStream(read.row.stream) && isWanted(filter, read);
      const [recorded] = isOurs ? await parts.decode([read.row]) : [];
      if (recorded === undefined) await subscription.ack(delivered);
      else yield toDelivery(subscription, delivered, { event: recorded, retryCount });
    }
  } finally {
    signal?.removeEventListener('abort', leave);
    await subscription.unsubscribe();
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
