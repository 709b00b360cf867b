// The events that are written and read: a small JSON document.

import { randomUUID } from 'node:crypto';
import type { JSONEventData } from '@kurrent/kurrentdb-client';

export function sampleData(index: number): Record<string, string | number> {
  return { index, account: `acc-${index % 1_000}`, amount: index * 7, note: 'x'.repeat(120) };
}

export function sampleEvent(index: number): JSONEventData {
  return {
    id: randomUUID(),
    contentType: 'application/json',
    type: 'Happened',
    data: sampleData(index),
    metadata: undefined,
  };
}

export function sampleEvents(count: number): JSONEventData[] {
  return Array.from({ length: count }, (_, index) => sampleEvent(index));
}
