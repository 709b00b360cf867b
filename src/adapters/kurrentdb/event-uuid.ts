// KurrentDB knows events by UUIDs, and our ids may be any short text.

import { idFromKey } from '../../foundation/ids.ts';

const shape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The id itself where it is a UUID, else one that follows from it; our own server does the same. */
export function eventUuid(eventId: string): string {
  if (shape.test(eventId)) return eventId;
  const lower = eventId.toLowerCase();
  return shape.test(lower) ? lower : idFromKey(eventId);
}
