// What a webhook says: the body and its headers, as Standard Webhooks recommends or as CloudEvents 1.0.
// Pure: every attempt sends the same body.

import { occurredAtOf, type DeliveryMessage } from '../../delivery/delivery-message.ts';

export type WebhookFormat = 'standard' | 'cloudevents-structured' | 'cloudevents-binary';

export interface WebhookContent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ContentOptions {
  readonly format: WebhookFormat;
  /** CloudEvents `source`. Default: `/<source stream>`. */
  readonly source?: string | undefined;
}

export function webhookContent(
  message: DeliveryMessage,
  { format, source }: ContentOptions,
): WebhookContent {
  if (format === 'standard') {
    const timestamp = occurredAtOf(message);
    const body = { type: message.eventType, timestamp, data: message.payload };
    return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  }
  const attributes = cloudEventAttributes(message, source);
  if (format === 'cloudevents-structured') {
    return {
      headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
      body: JSON.stringify({
        ...attributes,
        datacontenttype: 'application/json',
        data: message.payload,
      }),
    };
  }
  const entries = Object.entries(attributes).map(([name, value]) => [
    `ce-${name}`,
    encodeHeader(value),
  ]);
  return {
    headers: { ...Object.fromEntries(entries), 'content-type': 'application/json' },
    body: JSON.stringify(message.payload),
  };
}

function cloudEventAttributes(
  message: DeliveryMessage,
  source: string | undefined,
): Readonly<Record<string, string>> {
  const { sourceStreamId, sourceEventId, eventType, tenantId, correlationId } = message;
  const time = occurredAtOf(message);
  const given = {
    specversion: '1.0',
    // Together with the source it names the event, also where several messages came from it.
    id: sourceEventId,
    source: source ?? `/${encodeURIComponent(sourceStreamId)}`,
    type: eventType,
    subject: sourceStreamId,
    time,
    tenantid: tenantId,
    correlationid: correlationId,
    // Names of extensions are lower-case letters and digits.
    partitionkey: message.orderingKey,
  };
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => {
      return entry[1] !== undefined && entry[1] !== '';
    }),
  );
}

/** As CloudEvents says for HTTP headers: what is not printable ASCII, and `%` and `"`, as percents. */
export function encodeHeader(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\u0021\u0023\u0024\u0026-\u007e]/gu, (char) =>
      [...Buffer.from(char)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
        .join(''),
    );
}

/** An id that stands in a signed text between dots may hold none. */
export function webhookId(idempotencyKey: string): string {
  return encodeHeader(idempotencyKey).replaceAll('.', '%2E');
}
