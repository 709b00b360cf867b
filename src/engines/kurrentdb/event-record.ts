// Converts events to KurrentDB's records and back. The payload is the event's data; the rest of the envelope is its
// metadata, with correlation and causation under the names that KurrentDB's tools use. `server/kurrent` recognizes
// this form, including the order of the members, and stores such an event as a Millrace event.

import { idFromKey } from '../../foundation/ids.ts';
import type { TailRow } from '../../store/append-tail.ts';
import { decodeMeta } from '../../store/event-meta.ts';
import type { RowToWrite } from '../../store/store-engine.ts';
import type { ClientEvent, ClientRecord } from './client.ts';

export interface RecordOptions {
  /** Multi-stream append accepts only strings as metadata values. */
  readonly textsOnly?: boolean;
  /** Replaces the payload of the row. */
  readonly data?: unknown;
}

/** Contains the JSON of an envelope of another shape, which open stores accept. */
const wholeKey = '$millrace';
const texts = new Set(['occurredAt', 'idempotencyKey', 'tenant', 'correlationId', 'causationId']);
const objects = new Set(['aggregate', 'user', 'headers']);

export function toClientEvent(
  stream: string,
  row: RowToWrite,
  options: RecordOptions = {},
): ClientEvent {
  const { textsOnly = false } = options;
  const id = eventUuid(row.eventId);
  const envelope: Record<string, unknown> = { ...decodeMeta(stream, row.meta) };
  const eventId = id === row.eventId ? undefined : row.eventId;
  const metadata = hasKnownShape(envelope, textsOnly)
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
    data: 'data' in options ? options.data : (JSON.parse(row.payload) as unknown),
    metadata: textsOnly ? textsOf(metadata) : metadata,
  } as ClientEvent;
}

export function fromClientRecord(record: ClientRecord): TailRow {
  const metadata = membersOf(record.metadata) ?? bytesMember(record.metadata);
  const envelope = envelopeOf(record, metadata);
  const { eventId } = metadata;
  const isOurs = typeof eventId === 'string' && eventUuid(eventId) === record.id;
  return {
    sequence: sequenceOf(record),
    stream: record.streamId,
    revision: Number(record.revision),
    eventId: isOurs ? eventId : record.id,
    type: record.type,
    recordedAtMs: recordedAtMs(record),
    payload: payloadOf(record),
    meta: JSON.stringify(envelope),
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

/** An event that Millrace did not write gets a derived envelope, with its metadata as headers. */
function envelopeOf(
  record: ClientRecord,
  metadata: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const whole = parsed(metadata[wholeKey]);
  if (membersOf(whole) !== undefined || isMetaList(whole)) return whole as Record<string, unknown>;
  const { $correlationId, $causationId, ...rest } = metadata;
  if (typeof rest['occurredAt'] === 'string' && typeof rest['tenant'] === 'string') {
    return {
      occurredAt: rest['occurredAt'],
      correlationId: $correlationId,
      causationId: $causationId,
      idempotencyKey: rest['idempotencyKey'],
      tenant: rest['tenant'],
      aggregate: parsed(rest['aggregate']),
      user: parsed(rest['user']),
      headers: parsed(rest['headers']),
    };
  }
  return {
    occurredAt: record.created.toISOString(),
    correlationId: typeof $correlationId === 'string' ? $correlationId : record.id,
    ...(typeof $causationId === 'string' ? { causationId: $causationId } : {}),
    tenant: typeof rest['tenant'] === 'string' ? rest['tenant'] : '',
    aggregate: { bc: '', type: '', id: record.streamId },
    ...(Object.keys(rest).length === 0 ? {} : { headers: rest }),
  };
}

/** Other clients can write anything under the key of a whole envelope. */
function isMetaList(value: unknown): boolean {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'string';
}

/** Binary data reads as `{ "$bytes": "<base64>" }`. */
function payloadOf(record: ClientRecord): string {
  const data: unknown = record.data;
  if (data instanceof Uint8Array) return JSON.stringify({ $bytes: base64(data) });
  return JSON.stringify(data) ?? 'null';
}

function hasKnownShape(envelope: Record<string, unknown>, textsOnly: boolean): boolean {
  for (const [name, value] of Object.entries(envelope)) {
    if (texts.has(name) ? typeof value !== 'string' : !objects.has(name)) return false;
    if (objects.has(name) && (typeof value !== 'object' || value === null)) return false;
    // Lone surrogates survive as JSON escapes, but not as strings of the protocol.
    if (textsOnly && typeof value === 'string' && !value.isWellFormed()) return false;
  }
  return typeof envelope['occurredAt'] === 'string' && typeof envelope['tenant'] === 'string';
}

function textsOf(members: Readonly<Record<string, unknown>>): Record<string, string> {
  const into: Record<string, string> = {};
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined) into[name] = typeof value === 'string' ? value : JSON.stringify(value);
  }
  return into;
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
