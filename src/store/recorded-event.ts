// Events as they come back from the store: the whole envelope, and where it was recorded.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { toPosition, type Position } from './position.ts';

export type RecordedEvent<Payload = unknown> = DomainEventEnvelope<Payload> & {
  readonly stream: string;
  /** Counts from 0 within the stream, without holes. */
  readonly revision: number;
  readonly position: Position;
  /** When the store took it, ISO 8601. */
  readonly recordedAt: string;
};

/** One row as engines keep it: names as columns, the rest of the envelope as `meta`. */
export interface StoredRow {
  readonly sequence: number;
  readonly stream: string;
  readonly revision: number;
  readonly eventId: string;
  readonly type: string;
  readonly recordedAtMs: number;
  readonly payload: string;
  readonly meta: string;
}

type Meta = Omit<DomainEventEnvelope, 'type' | 'eventId' | 'payload'>;

export function toRecordedEvent(row: StoredRow): RecordedEvent {
  const meta = JSON.parse(row.meta) as Meta;
  return {
    type: row.type,
    eventId: row.eventId,
    ...meta,
    payload: JSON.parse(row.payload) as unknown,
    stream: row.stream,
    revision: row.revision,
    position: toPosition(row.sequence),
    recordedAt: new Date(row.recordedAtMs).toISOString(),
  };
}

/** What `toRecordedEvent` puts back; the payload travels beside it, already serialised. */
export function toMeta(envelope: DomainEventEnvelope): string {
  const { type: _type, eventId: _eventId, payload: _payload, ...meta } = envelope;
  return JSON.stringify(meta);
}

/** EventStoreDB's category: the text before the first hyphen; system streams have none. */
export function categoryOf(stream: string): string | undefined {
  if (stream.startsWith('$')) return undefined;
  const at = stream.indexOf('-');
  return at > 0 ? stream.slice(0, at) : undefined;
}
