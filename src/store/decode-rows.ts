// Converts rows to events; the keys of all data subjects in a page are loaded with one call.

import { subjectOf, unseal } from './erasure.ts';
import { toRecordedEvent, type RecordedEvent, type StoredRow } from './recorded-event.ts';
import type { SubjectKeys } from './store-engine.ts';

export async function decodeRows(
  rows: readonly StoredRow[],
  subjectKeys: SubjectKeys,
): Promise<RecordedEvent[]> {
  const events = rows.map(toRecordedEvent);
  const subjects = new Set<string>();
  for (const event of events) {
    const subject = subjectOf(event);
    if (subject !== undefined) subjects.add(subject);
  }
  if (subjects.size === 0) return events;
  const keys = await subjectKeys.get([...subjects], { create: false });
  return events.map((event) => {
    const subject = subjectOf(event);
    if (subject === undefined) return event;
    const payload = unseal(event.payload, { eventId: event.eventId, subject }, keys.get(subject));
    return { ...event, payload };
  });
}
