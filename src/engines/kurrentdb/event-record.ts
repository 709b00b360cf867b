// Converts events to KurrentDB's records and back. The payload is the event's data; the rest of the envelope is its
// metadata, with correlation and causation under the names that KurrentDB's tools use. `server/kurrent` recognizes
// this form, including the order of the members, and stores such an event as a Millrace event. Events in another form
// (`contracts/event-form.ts`) are rows with the data and metadata as they are written; the store reads their form.

import { markHeader, readForm, type EventForm, type Mark } from '../../contracts/event-form.ts';
import { aggregateOf } from '../../contracts/stream-name.ts';
import { idFromKey } from '../../foundation/ids.ts';
import { jsonText } from '../../foundation/parse-json.ts';
import type { TailRow } from '../../store/append-tail.ts';
import { decodeMeta } from '../../store/event-meta.ts';
import type { RowToWrite } from '../../store/store-engine.ts';
import type { ClientEvent, ClientRecord } from './client.ts';

/** Contains the JSON of an envelope of another shape, which open stores accept. */
const wholeKey = '$millrace';
const texts = new Set(['occurredAt', 'idempotencyKey', 'tenant', 'correlationId', 'causationId']);
const objects = new Set(['aggregate', 'user', 'headers']);

/** Given data replaces the payload of the row. */
export function toClientEvent(
  stream: string,
  row: RowToWrite,
  given: { readonly data?: unknown } = {},
): ClientEvent {
  const id = eventUuid(row.eventId);
  const envelope: Record<string, unknown> = { ...decodeMeta(stream, row.meta) };
  const eventId = id === row.eventId ? undefined : row.eventId;
  const ownMetadata = hasKnownShape(envelope)
    ? {
        $correlationId: envelope['correlationId'],
        $causationId: envelope['causationId'],
        occurredAt: envelope['occurredAt'],
        idempotencyKey: envelope['idempotencyKey'],
        tenant: envelope['tenant'],
        aggregate: envelope['aggregate'],
        user: envelope['user'],
        headers: envelope['headers'],
        eventId,
      }
    : { [wholeKey]: row.meta, eventId };
  return {
    id,
    type: row.type,
    contentType: 'application/json',
    data: 'data' in given ? given.data : (JSON.parse(row.payload) as unknown),
    metadata: formattedMetadata(envelope, eventId) ?? ownMetadata,
  } as ClientEvent;
}

export function fromClientRecord(record: ClientRecord): TailRow {
  const metadata = membersOf(record.metadata) ?? bytesMember(record.metadata);
  const form = readForm({ type: record.type, data: record.data, metadata });
  const envelope = envelopeOf(record, metadata, form);
  const eventId = metadata['eventId'] ?? form.eventId;
  const isOurs = typeof eventId === 'string' && eventUuid(eventId) === record.id;
  return {
    sequence: sequenceOf(record),
    stream: record.streamId,
    revision: Number(record.revision),
    eventId: isOurs ? eventId : record.id,
    type: record.type,
    recordedAtMs: recordedAtMs(record),
    payload: payloadOf(record),
    meta: jsonText(envelope),
    tenant: typeof envelope['tenant'] === 'string' ? envelope['tenant'] : '',
  };
}

/** The server's position has two numbers. The events of an old explicit transaction differ only in the second one. */
export function sequenceOf({ position }: ClientRecord): number {
  return Number(position?.commit ?? 0n);
}

/** The client's bridge returns seconds, its subscriptions return milliseconds: every path must give the same time. */
export function recordedAtMs({ created }: ClientRecord): number {
  return Math.floor(created.getTime() / 1_000) * 1_000;
}

/** An event in another form keeps its data and metadata, and has the tenant that they name. */
function envelopeOf(
  { id, streamId, created }: ClientRecord,
  metadata: Readonly<Record<string, unknown>>,
  form: EventForm,
): Record<string, unknown> {
  const whole = parsed(metadata[wholeKey]);
  if (membersOf(whole) !== undefined || isMetaList(whole)) return whole as Record<string, unknown>;
  const { format, payload: _payload, eventId: _eventId, tenant = '', ...own } = form;
  if (format === 'millrace') return { ...own, tenant };
  const mark: Mark = { json: true };
  const isPlain = format === 'metadata' && Object.keys(metadata).length === 0;
  return {
    occurredAt: created.toISOString(),
    correlationId: id,
    tenant,
    aggregate: aggregateOf(streamId, tenant),
    ...(isPlain ? {} : { headers: { ...metadata, [markHeader]: mark } }),
  };
}

/** The metadata of an event that the store wrote in another format; an envelope contains its event id. */
function formattedMetadata(
  envelope: Readonly<Record<string, unknown>>,
  eventId: string | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const { [markHeader]: mark, ...metadata } = membersOf(envelope['headers']) ?? {};
  const { format } = (membersOf(mark) ?? {}) as Partial<Mark>;
  if (format === undefined) return undefined;
  return format === 'metadata' ? { ...metadata, eventId } : metadata;
}

/** Other clients can write anything under the key of a whole envelope. */
function isMetaList(value: unknown): boolean {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'string';
}

/** Binary data reads as `{ "$bytes": "<base64>" }`. */
function payloadOf(record: ClientRecord): string {
  const data: unknown = record.data;
  if (data instanceof Uint8Array) return JSON.stringify({ $bytes: base64(data) });
  return jsonText(data) ?? 'null';
}

function hasKnownShape(envelope: Record<string, unknown>): boolean {
  for (const [name, value] of Object.entries(envelope)) {
    if (texts.has(name) ? typeof value !== 'string' : !objects.has(name)) return false;
    if (objects.has(name) && (typeof value !== 'object' || value === null)) return false;
  }
  const { bc, type, id } = membersOf(envelope['aggregate']) ?? {};
  const { occurredAt, tenant, correlationId } = envelope;
  return [occurredAt, tenant, correlationId, bc, type, id].every(
    (each) => typeof each === 'string',
  );
}

function membersOf(value: unknown): Record<string, unknown> | undefined {
  const isObject = typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
  return isObject && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
}

function bytesMember(metadata: unknown): Record<string, unknown> {
  return metadata instanceof Uint8Array ? { $bytes: base64(metadata) } : {};
}

/** Parses a value that multi-stream append wrote as a string. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    // Another writer stored a plain string.
    return value;
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The UUID that KurrentDB requires: the event id if it is a UUID, else derived from it like in `server/kurrent`. */
export function eventUuid(eventId: string): string {
  if (uuid.test(eventId)) return eventId;
  const lower = eventId.toLowerCase();
  return uuid.test(lower) ? lower : idFromKey(eventId);
}
