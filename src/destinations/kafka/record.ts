// Converts a message to a Kafka record. Every attempt produces the same record.

import { idempotencyKeyOf } from '../../contracts/idempotency-key.ts';
import { cloudEventAttributes, cloudEventDocument } from '../../delivery/cloud-event.ts';
import { occurredAtOf, type DeliveryMessage } from '../../delivery/delivery-message.ts';

export type KafkaFormat = 'json' | 'cloudevents-structured' | 'cloudevents-binary';

export interface RecordOptions {
  readonly format: KafkaFormat;
  /** CloudEvents `source`. Default: `/<source stream>`. */
  readonly source?: string | undefined;
  /** Default: the part of the integration type after the colon. */
  readonly topic?: string | ((message: DeliveryMessage) => string) | undefined;
}

export interface KafkaRecord {
  readonly topic: string;
  /** Records with the same key share a partition, so they keep their order. */
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The approximate size on the wire. */
  readonly bytes: number;
}

/** The varints and lengths around the parts of a record. */
const overheadBytes = 32;

export function kafkaRecord(message: DeliveryMessage, options: RecordOptions): KafkaRecord {
  const { format, source, topic = topicOfType } = options;
  const isStructured = format === 'cloudevents-structured';
  const value = isStructured
    ? cloudEventDocument(message, source)
    : JSON.stringify(message.payload);
  const headers = { ...headersOf(message), ...contentHeaders(message, options) };
  // Without an ordering key, messages are spread over the partitions.
  const key = message.orderingKey || message.sourceEventId;
  const parts = [key, value, ...Object.entries(headers).flat()];
  const bytes = parts.reduce((sum, text) => sum + Buffer.byteLength(text), overheadBytes);
  return { topic: typeof topic === 'string' ? topic : topic(message), key, value, headers, bytes };
}

/** `kafka:payments` → `payments`; without a colon the whole type. */
function topicOfType({ integrationType }: DeliveryMessage): string {
  return integrationType.slice(integrationType.indexOf(':') + 1);
}

/** Checked here because Kafka would reject the name only after a round trip. */
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

/** By the Kafka binding of CloudEvents, whose header values are UTF-8 and need no encoding. */
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
    // JSON.stringify returns undefined for functions and symbols.
    return value === undefined || value === null || text === undefined ? [] : [[name, text]];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}
