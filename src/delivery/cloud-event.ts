// The attributes of a message as a CloudEvents 1.0 event; each transport encodes them in its way.

import { occurredAtOf, type DeliveryMessage } from './delivery-message.ts';

export function cloudEventAttributes(
  message: DeliveryMessage,
  /** Default: `/<source stream>`. */
  source: string | undefined,
): Readonly<Record<string, string>> {
  const { sourceStreamId, sourceEventId, eventType, tenantId, correlationId } = message;
  const time = occurredAtOf(message);
  const attributes = {
    specversion: '1.0',
    // Identifies the event together with the source, also if several messages came from it.
    id: sourceEventId,
    source: source ?? `/${encodeURIComponent(sourceStreamId)}`,
    type: eventType,
    subject: sourceStreamId,
    time,
    tenantid: tenantId,
    correlationid: correlationId,
    // Names of extensions consist of lower-case letters and digits.
    partitionkey: message.orderingKey,
  };
  return Object.fromEntries(
    Object.entries(attributes).filter((entry): entry is [string, string] => {
      return entry[1] !== undefined && entry[1] !== '';
    }),
  );
}

/** The structured form: the whole event as one JSON document. */
export function cloudEventDocument(message: DeliveryMessage, source: string | undefined): string {
  return JSON.stringify({
    ...cloudEventAttributes(message, source),
    datacontenttype: 'application/json',
    data: message.payload,
  });
}
