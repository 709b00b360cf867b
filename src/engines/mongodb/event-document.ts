// Converts events to documents and back. Values that BSON preserves are stored as BSON, so that they can be
// queried; other values are stored as JSON strings.

import { isDeepStrictEqual } from 'node:util';
import { decodeMeta } from '../../store/event-meta.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import { categoryOf } from '../../store/stream-category.ts';
import type { RowToWrite } from '../../store/store-engine.ts';
import { aggregateIdOf } from './aggregate-id.ts';
import type { EventDocument, EventMetadata } from './collections.ts';

export const documentLimits = {
  /** Longer JSON stays a string: as BSON it could grow sevenfold. */
  bsonFromCharsMax: 131_072,
  /** MongoDB allows 100 levels, and these values are nested in other documents. */
  bsonDepthMax: 60,
  /** MongoDB allows 16 MiB for the whole document. */
  documentBytesMax: 15 * 1_048_576,
} as const;

export interface EventLocation {
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
  readonly recordedAt: Date;
}

export function toDocument(row: RowToWrite, location: EventLocation): EventDocument {
  const category = categoryOf(location.stream);
  const envelope: Envelope = decodeMeta(location.stream, row.meta);
  const timestamp = new Date(envelope.occurredAt ?? Number.NaN);
  const dated = Number.isNaN(timestamp.getTime()) ? location.recordedAt : timestamp;
  const aggregateType = envelope.aggregate?.type;
  return {
    _id: row.eventId,
    aggregateId: aggregateIdOf(location.stream, envelope.aggregate),
    aggregateType: typeof aggregateType === 'string' ? aggregateType : '',
    eventType: row.type,
    ...toEventData(row.payload),
    version: location.revision + 1,
    timestamp: dated,
    metadata: toMetadata(row, envelope, dated),
    stream: location.stream,
    position: location.position,
    tenant: row.tenant,
    ...(category === undefined ? {} : { category }),
    recordedAt: location.recordedAt,
  };
}

/** Never throws: a document that another program wrote or changed must not stop a reader. */
export function toRow(document: EventDocument): StoredRow {
  return {
    sequence: document.position,
    stream: document.stream,
    revision: document.version - 1,
    eventId: eventIdOf(document),
    type: document.eventType,
    recordedAtMs: document.recordedAt instanceof Date ? document.recordedAt.getTime() : 0,
    payload: orUnreadable(() => payloadOf(document)),
    meta: orUnreadable(() => document.metadata.envelope ?? JSON.stringify(toEnvelope(document))),
  };
}

function payloadOf({ eventData, encoding }: EventDocument): string | undefined {
  return encoding === 'json' ? String(eventData) : JSON.stringify(eventData);
}

/** The empty string is no JSON, so the event is reported as unreadable. */
function orUnreadable(toText: () => string | undefined): string {
  try {
    return toText() ?? '';
  } catch {
    // A member is missing or has another type.
    return '';
  }
}

export function eventIdOf(document: Pick<EventDocument, '_id' | 'eventId'>): string {
  return document.eventId ?? document._id;
}

/**
 * The document with another `_id`, for an event whose id is taken by the same event in another stream. Any free
 * `_id` works, because events are identified by their position.
 */
export function underOtherId(document: EventDocument, attempt: number): EventDocument {
  const eventId = eventIdOf(document);
  const { stream, version } = document;
  return {
    ...document,
    _id: `${eventId}@${stream}@${version}${'@'.repeat(attempt)}`,
    eventId,
  };
}

/** An upper bound for the size of the document. */
export function bytesAtMost({ payload, meta }: RowToWrite): number {
  return 2_048 + grown(payload) + grown(meta);
}

function grown(json: string): number {
  const bytes = Buffer.byteLength(json, 'utf8');
  return json.length <= documentLimits.bsonFromCharsMax ? 7 * bytes : bytes;
}

interface Envelope {
  readonly occurredAt?: string;
  readonly correlationId?: string;
  readonly causationId?: string;
  readonly idempotencyKey?: string;
  readonly tenant?: string;
  readonly aggregate?: { readonly type?: unknown; readonly id?: unknown };
  readonly user?: { readonly id?: unknown };
  readonly headers?: unknown;
}

function toEventData(payload: string): Pick<EventDocument, 'eventData' | 'encoding'> {
  if (payload.length <= documentLimits.bsonFromCharsMax) {
    const eventData = JSON.parse(payload) as unknown;
    if (fitsBson(eventData)) return { eventData };
  }
  return { eventData: payload, encoding: 'json' };
}

function toMetadata(row: RowToWrite, envelope: Envelope, timestamp: Date): EventMetadata {
  const { correlationId, causationId, idempotencyKey, aggregate, user, headers } = envelope;
  const userId = user?.id;
  const summary: EventMetadata = {
    ...(typeof correlationId === 'string' ? { correlationId } : {}),
    ...(typeof causationId === 'string' ? { causationId } : {}),
    ...(typeof userId === 'string' ? { userId } : {}),
  };
  if (row.meta.length > documentLimits.bsonFromCharsMax || !fitsBson(envelope)) {
    return { ...wellFormed(summary), envelope: row.meta };
  }
  const isOnlyId = isDeepStrictEqual(user, { id: userId });
  const metadata: EventMetadata = {
    ...summary,
    ...(user === undefined || isOnlyId ? {} : { user }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(aggregate === undefined ? {} : { aggregate }),
    ...(headers === undefined ? {} : { headers }),
    ...(timestamp.toISOString() === envelope.occurredAt || envelope.occurredAt === undefined
      ? {}
      : { occurredAt: envelope.occurredAt }),
  };
  // Open stores accept envelopes of any shape: only an envelope that can be restored exactly is split.
  const restored = toEnvelope({ metadata, timestamp, tenant: row.tenant });
  return isDeepStrictEqual(restored, envelope) ? metadata : { ...summary, envelope: row.meta };
}

function toEnvelope({
  metadata,
  timestamp,
  tenant,
}: Pick<EventDocument, 'metadata' | 'timestamp' | 'tenant'>): Record<string, unknown> {
  const { correlationId, causationId, idempotencyKey, aggregate, userId, headers } = metadata;
  const user = metadata.user ?? (userId === undefined ? undefined : { id: userId });
  return {
    occurredAt: metadata.occurredAt ?? timestamp.toISOString(),
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(causationId === undefined ? {} : { causationId }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    tenant,
    ...(aggregate === undefined ? {} : { aggregate }),
    ...(user === undefined ? {} : { user }),
    ...(headers === undefined ? {} : { headers }),
  };
}

/** Fields for queries only, in addition to the full JSON; values that BSON cannot represent are omitted. */
function wellFormed(summary: EventMetadata): EventMetadata {
  return Object.fromEntries(Object.entries(summary).filter(([, value]) => fitsBson(value)));
}

// oxlint-disable-next-line no-control-regex -- the null character is what ends a key in BSON
const plainKey = /^[^$.\u0000][^.\u0000]*$/;

/** Keys with a special meaning for BSON, its drivers or an engine with MongoDB's protocol. */
const reservedKeys = new Set(['__proto__', '_bsontype', '_id']);

/**
 * Whether every engine with MongoDB's protocol preserves the value. Strings must be well-formed, and keys must not
 * look like operators or paths. FerretDB rejects a list directly inside a list.
 */
export function fitsBson(value: unknown, depthLeft: number = documentLimits.bsonDepthMax): boolean {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\u0000');
  if (typeof value !== 'object' || value === null) return true;
  if (depthLeft === 0) return false;
  if (Array.isArray(value)) {
    return value.every((item) => !Array.isArray(item) && fitsBson(item, depthLeft - 1));
  }
  for (const [key, member] of Object.entries(value)) {
    if (!plainKey.test(key) || reservedKeys.has(key) || !key.isWellFormed()) return false;
    if (!fitsBson(member, depthLeft - 1)) return false;
  }
  return true;
}
