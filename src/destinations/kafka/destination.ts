// Publishes messages to Kafka topics, acknowledged by all in-sync replicas. The idempotent producer deduplicates the
// retries of the driver; a retry by the outbox is a new record with the same key.

import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { SASLOptions } from '@platformatic/kafka';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { outcomeOfError, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { cleanText } from '../../foundation/error-text.ts';
import { MillraceError } from '../../foundation/error.ts';
import { parseHostPort } from '../../foundation/host-port.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { withinTime } from '../../foundation/async/within-time.ts';
import { publishRecords, noResponse, type KafkaWire } from './publisher.ts';
import { createKafkaQueue } from './queue.ts';
import { kafkaRecord, type KafkaFormat, type KafkaRecord } from './record.ts';

export interface KafkaOptions {
  /**
   * The topic, or a function that returns it for a message. A message is dead if the function returns an internal topic
   * (`_…`). Default: the part of the integration type after the colon, `kafka:payments` → `payments`.
   */
  readonly topic?: string | ((message: DeliveryMessage) => string) | undefined;
  /** The format of the record value. Default: `json`, the payload only. */
  readonly format?: KafkaFormat | undefined;
  /** CloudEvents `source`. Default: `/<source stream>`. */
  readonly source?: string | undefined;
  /** Default: `millrace`. */
  readonly clientId?: string | undefined;
  readonly tls?: TlsOptions | undefined;
  readonly sasl?: SASLOptions | undefined;
  readonly compression?: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd' | undefined;
  /** Creates missing topics, if the brokers allow it. Default: false. */
  readonly createTopics?: boolean | undefined;
  /** Time limit of connecting and of each request. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
  /** How long a message waits for others, to share a request. Default: 1. */
  readonly lingerMs?: number | undefined;
  /** Records per request. Default: 1,000. */
  readonly recordsMax?: number | undefined;
  /** Bytes per request; must be below the `max.message.bytes` of the topics. Default: 512 KiB. */
  readonly bytesMax?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** A destination that also accepts batches. */
export interface KafkaDestination extends Destination, AsyncDisposable {
  /** Returns one outcome per message, in their order; never rejects. */
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
  /** Retries by the driver, per request. */
  retries: 2,
  retryDelayMs: 100,
} as const;

/**
 * A destination that publishes to Kafka. The record key is the ordering key of the message, else the id of its event.
 * The destination connects with the first message, so an unreachable broker causes a retry.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { kafkaDestination } from 'millrace/destinations/kafka';
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
    // Implies `acks: all` and keeps the order of records.
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
    // The partitioner is the default of Kafka clients, so other producers of a topic choose the same partition.
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
    const outcomes: DeliveryOutcome[] = messages.map(() => noResponse);
    const indexes: number[] = [];
    const records: KafkaRecord[] = [];
    for (const [at, message] of messages.entries()) {
      try {
        const record = kafkaRecord(message, { format, source, topic });
        // Parts of the topic may come from tenants; topics such as __consumer_offsets and _schemas belong to the cluster.
        if (record.topic !== topic && record.topic.startsWith('_')) {
          const error = `the topic '${cleanText(record.topic, 100)}' is not allowed`;
          outcomes[at] = { kind: 'dead', error };
          continue;
        }
        records.push(record);
        indexes.push(at);
      } catch (error) {
        // The user's `topic` function threw: only this message fails.
        outcomes[at] = outcomeOfError(error);
      }
    }
    const published = await queue.publish(records, signal ?? neverAborted);
    for (const [index, at] of indexes.entries()) outcomes[at] = published[index] ?? noResponse;
    return outcomes;
  };
  const send: Destination = async (message, { signal }) =>
    (await sendBatch([message], { signal }))[0] ?? noResponse;
  return Object.assign(send, {
    sendBatch,
    async [Symbol.asyncDispose]() {
      const closed = queue.close();
      await withinTime(closed, { ms: timeoutMs, late: () => undefined, clock });
      // Closing stops the retries of the driver, including requests to a broker that does not respond.
      await producer.close();
      await closed;
    },
  });
}

const neverAborted = new AbortController().signal;

function check(numbers: Readonly<Record<string, number>>): void {
  for (const [field, value] of Object.entries(numbers)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new MillraceError('CONFIG_INVALID', `${field} must be a positive integer`, {
      details: { field },
    });
  }
}

const portDefault = 9_092;

/** Accepts `broker-1:9092,broker-2` or a list; one reachable broker suffices to find the others. */
export function parseBrokers(brokers: string | readonly string[]): readonly string[] {
  const given = typeof brokers === 'string' ? brokers.split(',') : brokers;
  const named = given.map((each) => each.trim()).filter((each) => each !== '');
  if (named.length === 0) throw invalidBrokers();
  return named.map((each) => {
    const parsed = parseHostPort(each, portDefault);
    if (parsed === undefined) throw invalidBrokers();
    return `${parsed.host}:${parsed.port}`;
  });
}

/** The error does not quote the value, which may be a URL with a password. */
function invalidBrokers(): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    'Kafka brokers must be host:port, as a list or separated by commas; TLS and SASL are options',
    { details: { field: 'brokers' } },
  );
}
