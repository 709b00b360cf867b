// The envelope of a Millrace event without its payload, as event metadata for clients.

import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { toUuid } from '../uuid.ts';

/** The projections of KurrentDB use the names `$correlationId` and `$causationId`. */
export function nativeMetadata(event: DomainEventEnvelope): string {
  const { correlationId, causationId, occurredAt, idempotencyKey, tenant, aggregate } = event;
  const { user, headers, eventId } = event;
  return JSON.stringify({
    $correlationId: correlationId,
    $causationId: causationId,
    occurredAt,
    idempotencyKey,
    tenant,
    aggregate,
    user,
    headers,
    // The wire accepts only UUIDs.
    eventId: toUuid(eventId) === eventId ? undefined : eventId,
  });
}

/** The reverse, not validated; undefined: not the metadata of a Millrace event. */
export function fromNativeMetadata(
  members: Readonly<Record<string, unknown>>,
  event: { readonly eventId: string; readonly type: string; readonly payload: unknown },
): DomainEventEnvelope | undefined {
  const { $correlationId, $causationId, eventId, ...rest } = members;
  if (rest['tenant'] === undefined || rest['occurredAt'] === undefined) return undefined;
  return {
    type: event.type,
    eventId: eventId === undefined ? event.eventId : eventId,
    correlationId: $correlationId,
    ...($causationId === undefined ? {} : { causationId: $causationId }),
    ...rest,
    payload: event.payload,
  } as DomainEventEnvelope;
}
