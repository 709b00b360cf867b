// A message as a Kafka record: topic, key, headers and value. Pure: every attempt makes the same record.

import { cloudEventAttributes, cloudEventDocument } from '../../delivery/cloud-event.ts';
import {
  idempotencyKeyOf,
  occurredAtOf,
  type DeliveryMessage,
} from '../../delivery/delivery-message.ts';

export type KafkaFormat = 'json' | 'cloudevents-structured' | 'cloudevents-binary';

export interface RecordOptions {
  readonly format: KafkaFormat;
  /** CloudEvents `source`. Default: `/<source stream>`. */
  readonly source?: string | undefined;
  /** Default: what stands behind the colon of the integration type. */
  readonly topic?: ((message: DeliveryMessage) => string) | undefined;
}

export interface KafkaRecord {
  readonly topic: string;
  /** One partition, and so one order, for all that have it. */
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
  /** About what it takes on the wire. */
  readonly bytes: number;
}

/** Of the varints and lengths around a record's parts. */
const bytesAround = 32;

export function kafkaRecord(message: DeliveryMessage, options: RecordOptions): KafkaRecord {
  const { format, source, topic = topicOfType } = options;
  const isStructured = format === 'cloudevents-structured';
  const value = isStructured
    ? cloudEventDocument(message, source)
    : JSON.stringify(message.payload);
  const headers = { ...headersOf(message), ...contentHeaders(message, options) };
  // The ordering key keeps an order; without one, messages spread over the partitions.
  const key = message.orderingKey || message.sourceEventId;
  const parts = [key, value, ...Object.entries(headers).flat()];
  const bytes = parts.reduce((sum, text) => sum + Buffer.byteLength(text), bytesAround);
  return { topic: topic(message), key, value, headers, bytes };
}

/** `kafka:payments` → `payments`; without a colon the type itself. */
function topicOfType({ integrationType }: DeliveryMessage): string {
  return integrationType.slice(integrationType.indexOf(':') + 1);
}

/** What Kafka takes as a topic's name; asked for any other it would say so only after a round trip. */
export function isTopicName(topic: string): boolean {
  return /^[a-zA-Z0-9._-]{1,249}$/.test(topic) && topic !== '.' && topic !== '..';
}

function headersOf(message: DeliveryMessage): Record<string, string> {
  const { eventType, tenantId, userId, correlationId, sourceStreamId } = message;
  return texts({
    ...message.headers,
    eventType,
    idempotencyKey: idempotencyKeyOf(message),
    sourceStreamId,
    tenantId,
    userId,
    correlationId,
    occurredAt: occurredAtOf(message),
  });
}

/** As the Kafka binding of CloudEvents says; its texts are UTF-8 and need no encoding. */
function contentHeaders(
  message: DeliveryMessage,
  { format, source }: RecordOptions,
): Record<string, string> {
  if (format === 'json') return { 'content-type': 'application/json' };
  if (format === 'cloudevents-structured') {
    return { 'content-type': 'application/cloudevents+json; charset=UTF-8' };
  }
  const attributes = Object.entries(cloudEventAttributes(message, source));
  return {
    ...Object.fromEntries(attributes.map(([name, value]) => [`ce_${name}`, value])),
    'content-type': 'application/json',
  };
}

function texts(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(values).flatMap(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    // JSON has no text for functions and the like.
    return value === undefined || value === null || text === undefined ? [] : [[name, text]];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}
