// An event as a subscription would deliver it; deterministic for its index in a test.

import { createEnvelope, type NewEvent } from '../contracts/envelope.ts';
import { parseEventType } from '../contracts/event-type.ts';
import { buildStreamName } from '../contracts/stream-name.ts';
import { idFromKey } from '../foundation/ids.ts';
import { toPosition } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';

export const givenTenant = 'test';
export const givenNowMs = Date.UTC(2025, 8, 30, 10);

export function givenEvent(
  { type, payload }: NewEvent,
  { index, nowMs, id = 'given' }: { index: number; nowMs: number; id?: string },
): RecordedEvent {
  const { agg } = parseEventType(type);
  const clock = { now: () => nowMs, sleep: () => Promise.resolve() };
  const envelope = createEnvelope(
    { type, payload },
    {
      tenant: givenTenant,
      aggregate: { bc: 'given', type: agg, id },
      eventId: idFromKey(`given#${index}`),
    },
    { clock },
  );
  return {
    ...envelope,
    stream: buildStreamName<string, string>('given', agg, 1, givenTenant, id),
    revision: index,
    position: toPosition(index + 1),
    recordedAt: envelope.occurredAt,
  };
}
