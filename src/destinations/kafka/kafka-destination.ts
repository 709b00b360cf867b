// Messages to Kafka topics, acknowledged by all replicas in sync. The idempotent producer keeps the driver's
// own retries from storing a record twice; an attempt of the outbox's is a new record with the same key.

import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { SASLOptions } from '@platformatic/kafka';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { outcomeOfError, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { withinTime } from '../../foundation/within-time.ts';
import { parseBrokers } from './kafka-brokers.ts';
import { publishRecords, unanswered, type KafkaWire } from './kafka-publisher.ts';
import { createKafkaQueue } from './kafka-queue.ts';
import { kafkaRecord, type KafkaFormat, type KafkaRecord } from './kafka-record.ts';

export interface KafkaOptions {
  /** Default: what stands behind the colon of the integration type, `kafka:payments` → `payments`. */
  readonly topic?: (message: DeliveryMessage) => string;
  /** What a record's value is. Default: `json`, the payload alone. */
  readonly format?: KafkaFormat;
  /** CloudEvents `source`. Default: `/<source stream>`. */
  readonly source?: string;
  /** Default: `millrace`. */
  readonly clientId?: string;
  readonly tls?: TlsOptions;
  readonly sasl?: SASLOptions;
  readonly compression?: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  /** Lets brokers that allow it create a topic when it is first written to. Default: false. */
  readonly createTopics?: boolean;
  /** Of connecting, and of each request. Default: 5 s. */
  readonly timeoutMs?: number;
  /** How long a message waits for others to share its request. Default: 1. */
  readonly lingerMs?: number;
  /** Of a request. Default: 1,000. */
  readonly recordsMax?: number;
  /** Of a request; below the topics' `max.message.bytes`. Default: 512 KiB. */
  readonly bytesMax?: number;
  readonly clock?: Clock;
}

/** A destination that takes many at once too. */
export interface KafkaDestination extends Destination, AsyncDisposable {
  /** One outcome for each message, in their order; it never rejects. */
  readonly sendBatch: (
    messages: readonly DeliveryMessage[],
    context?: { readonly signal?: AbortSignal },
  ) => Promise<readonly DeliveryOutcome[]>;
}

export const kafkaLimits = {
  timeoutMs: 5_000,
  lingerMs: 1,
  recordsMax: 1_000,
  bytesMax: 512 * 1_024,
  /** The driver's own, of one request. */
  retries: 2,
  retryDelayMs: 100,
} as const;

/**
 * A destination that publishes to Kafka. The record's key is the message's ordering key, else the id of its
 * event. Nothing is connected before the first message: brokers that are away mean a retry.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { kafkaDestination } from 'millrace/adapters/kafka';
 *
 * await using kafka = await kafkaDestination('broker-1:9092,broker-2:9092', {
 *   tls: {},
 *   sasl: { mechanism: 'SCRAM-SHA-512', username: 'outbox', password: 'secret' },
 * });
 * const { deliver } = createDelivery({ destinations: { kafka } });
 */
export async function kafkaDestination(
  brokers: string | readonly string[],
  options: KafkaOptions = {},
): Promise<KafkaDestination> {
  const { topic, format = 'json', source, clock = systemClock } = options;
  const { lingerMs = kafkaLimits.lingerMs, timeoutMs = kafkaLimits.timeoutMs } = options;
  const { recordsMax = kafkaLimits.recordsMax, bytesMax = kafkaLimits.bytesMax } = options;
  check({ timeoutMs, recordsMax, bytesMax });
  const bootstrapBrokers = [...parseBrokers(brokers)];
  const { Producer, murmur2, stringSerializers } = await loadDriver(
    '@platformatic/kafka',
    () => import('@platformatic/kafka'),
  );
  const { tls, sasl, compression } = options;
  const producer = new Producer<string, string, string, string>({
    clientId: options.clientId ?? 'millrace',
    bootstrapBrokers,
    serializers: stringSerializers,
    // It sets acks to all, and keeps what is sent in order.
    idempotent: true,
    autocreateTopics: options.createTopics ?? false,
    timeout: timeoutMs,
    connectTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    retries: kafkaLimits.retries,
    retryDelay: kafkaLimits.retryDelayMs,
    ...(tls === undefined ? {} : { tls }),
    ...(sasl === undefined ? {} : { sasl }),
    ...(compression === undefined ? {} : { compression }),
  });
  const wire: KafkaWire = {
    async partitionsOf(name) {
      const { topics } = await producer.metadata({ topics: [name] });
      return topics.get(name)?.partitionsCount ?? 1;
    },
    // As Kafka's own clients place keys, so that other producers of a topic agree.
    hashOf: (key) => murmur2(Buffer.from(key)) & 0x7f_ff_ff_ff,
    async produce(records) {
      const messages = records.map(({ topic: name, partition, key, value, headers }) => {
        return { topic: name, partition, key, value, headers: { ...headers } };
      });
      const { offsets = [] } = await producer.send({ messages });
      return new Map(offsets.map((each) => [`${each.topic}:${each.partition}`, each.offset]));
    },
  };
  const queue = createKafkaQueue({
    clock,
    lingerMs,
    recordsMax,
    bytesMax,
    send: (records) => publishRecords(wire, records, { recordsMax, bytesMax }),
  });

  const sendBatch: KafkaDestination['sendBatch'] = async (messages, { signal } = {}) => {
    const outcomes: DeliveryOutcome[] = messages.map(() => unanswered);
    const places: number[] = [];
    const records: KafkaRecord[] = [];
    for (const [at, message] of messages.entries()) {
      try {
        records.push(kafkaRecord(message, { format, source, topic }));
        places.push(at);
      } catch (error) {
        // The user's own function for topics: its fault is of this message, not of its neighbours.
        outcomes[at] = outcomeOfError(error);
      }
    }
    const published = await queue.publish(records, signal ?? neverAborted);
    for (const [index, at] of places.entries()) outcomes[at] = published[index] ?? unanswered;
    return outcomes;
  };
  const send: Destination = async (message, { signal }) =>
    (await sendBatch([message], { signal }))[0] ?? unanswered;
  return Object.assign(send, {
    sendBatch,
    async [Symbol.asyncDispose]() {
      const closed = queue.close();
      await withinTime(closed, { ms: timeoutMs, late: () => undefined, clock });
      // Ends the driver's retries, and with them what a broker that says nothing still holds.
      await producer.close();
      await closed;
    },
  });
}

const neverAborted = new AbortController().signal;

function check(numbers: Readonly<Record<string, number>>): void {
  for (const [field, value] of Object.entries(numbers)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new MillraceError('CONFIG_INVALID', `${field} must be a whole number from 1 on`, {
      details: { field },
    });
  }
}
