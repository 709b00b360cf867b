// The body and headers of a webhook, by the recommendation of Standard Webhooks or by CloudEvents 1.0. Every attempt
// sends the same body.

import { cloudEventAttributes, cloudEventDocument } from '../../delivery/cloud-event.ts';
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
  if (format === 'cloudevents-structured') {
    return {
      headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
      body: cloudEventDocument(message, source),
    };
  }
  const entries = Object.entries(cloudEventAttributes(message, source)).map(([name, value]) => [
    `ce-${name}`,
    encodeHeader(value),
  ]);
  return {
    headers: { ...Object.fromEntries(entries), 'content-type': 'application/json' },
    body: JSON.stringify(message.payload),
  };
}

/** Percent-encodes all but printable ASCII, and `%` and `"`, as CloudEvents requires for HTTP headers. */
export function encodeHeader(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\u0021\u0023\u0024\u0026-\u007e]/gu, (char) =>
      [...Buffer.from(char)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
        .join(''),
    );
}

/** Without dots, because the signed text is `id.timestamp.body`. */
export function webhookId(idempotencyKey: string): string {
  return encodeHeader(idempotencyKey).replaceAll('.', '%2E');
}
