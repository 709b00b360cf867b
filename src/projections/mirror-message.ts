// An event as screens get it: the message of the event bus, on a channel for each type.

import type { RecordedEvent } from '../store/recorded-event.ts';

export interface MirrorMessage {
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateId: string;
  readonly payload: unknown;
  readonly metadata: {
    readonly correlationId: string;
    readonly causationId: string | null;
    readonly userId: string | null;
  };
}

/**
 * The channel that events of a type are mirrored on.
 *
 * @example
 * import { mirrorChannel } from 'millrace/projections';
 *
 * console.log(mirrorChannel('task.status-changed.v1')); // events.task.status-changed.v1
 */
export function mirrorChannel(eventType: string): string {
  return `events.${eventType}`;
}

export function mirrorMessage(event: RecordedEvent): MirrorMessage {
  const { eventId, type, aggregate, payload, correlationId, causationId, user } = event;
  return {
    eventId,
    eventType: type,
    aggregateId: aggregate.id,
    payload,
    metadata: { correlationId, causationId: causationId ?? null, userId: user?.id ?? null },
  };
}
