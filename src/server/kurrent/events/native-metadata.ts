// The envelope of a Millrace event without its payload, as the metadata that clients see.

import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { toUuid } from '../uuid.ts';

/** `$correlationId` and `$causationId` are the names that KurrentDB's own projections look for. */
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
    // The wire has room for UUIDs only.
    eventId: toUuid(eventId) === eventId ? undefined : eventId,
  });
}

/** The way back, unchecked; undefined where the metadata is plainly somebody else's. */
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
