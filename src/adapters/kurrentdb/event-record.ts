// Events as KurrentDB keeps them, and back. The payload is the event's data; the rest of the envelope
// is its metadata, correlation and causation under the names that KurrentDB's own tools follow. Our
// own server knows this very form, order of members included, and stores such an event as one of ours.

import type { StoredRow } from '../../store/recorded-event.ts';
import { decodeMeta } from '../../store/event-meta.ts';
import type { RowToWrite } from '../../store/store-engine.ts';
import { addMark, takeMark } from './append-mark.ts';
import { eventUuid } from './event-uuid.ts';
import type { ClientEvent, ClientRecord } from './kurrentdb-client.ts';

export interface RecordOptions {
  /** Marks the append that wrote the event, so that it can tell its own from an earlier one. */
  readonly mark?: string;
  /** Multi-stream append takes only texts as members of the metadata. */
  readonly textsOnly?: boolean;
  /** In place of the row's payload. */
  readonly data?: unknown;
}

/** For envelopes of shapes that we do not know, as open stores take them: the text as it is. */
const wholeKey = '$millrace';
const texts = new Set(['occurredAt', 'idempotencyKey', 'tenant', 'correlationId', 'causationId']);
const objects = new Set(['aggregate', 'user', 'headers']);

export function toClientEvent(
  stream: string,
  row: RowToWrite,
  options: RecordOptions = {},
): ClientEvent {
  const { mark, textsOnly = false } = options;
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
        headers: addMark(envelope['headers'], mark),
        eventId,
      }
    : { [wholeKey]: row.meta, headers: addMark(undefined, mark), eventId };
  return {
    id,
    type: row.type,
    contentType: 'application/json',
    data: 'data' in options ? options.data : (JSON.parse(row.payload) as unknown),
    metadata: textsOnly ? textsOf(metadata) : metadata,
  } as ClientEvent;
}

export interface ReadRecord {
  readonly row: StoredRow;
  readonly tenant: string;
  /** Of the append that wrote it, on the last event of each. */
  readonly mark: string | undefined;
}

export function fromClientRecord(record: ClientRecord): ReadRecord {
  const metadata = membersOf(record.metadata) ?? bytesMember(record.metadata);
  const { mark, headers } = takeMark(parsed(metadata['headers']));
  const envelope = envelopeOf(record, metadata, headers);
  const { eventId } = metadata;
  const isOurs = typeof eventId === 'string' && eventUuid(eventId) === record.id;
  return {
    tenant: typeof envelope['tenant'] === 'string' ? envelope['tenant'] : '',
    mark,
    row: {
      sequence: Number(record.position?.commit ?? 0n),
      stream: record.streamId,
      revision: Number(record.revision),
      eventId: isOurs ? eventId : record.id,
      type: record.type,
      recordedAtMs: record.created.getTime(),
      payload: payloadOf(record),
      meta: JSON.stringify(envelope),
    },
  };
}

/** What Millrace did not write is made up from what is there: its metadata is read as headers. */
function envelopeOf(
  record: ClientRecord,
  metadata: Readonly<Record<string, unknown>>,
  headers: unknown,
): Record<string, unknown> {
  const { $correlationId, $causationId, [wholeKey]: whole, ...rest } = metadata;
  if (typeof whole === 'string') return JSON.parse(whole) as Record<string, unknown>;
  if (typeof rest['occurredAt'] === 'string' && typeof rest['tenant'] === 'string') {
    return {
      occurredAt: rest['occurredAt'],
      correlationId: $correlationId,
      causationId: $causationId,
      idempotencyKey: rest['idempotencyKey'],
      tenant: rest['tenant'],
      aggregate: parsed(rest['aggregate']),
      user: parsed(rest['user']),
      headers,
    };
  }
  return {
    occurredAt: record.created.toISOString(),
    correlationId: typeof $correlationId === 'string' ? $correlationId : record.id,
    ...(typeof $causationId === 'string' ? { causationId: $causationId } : {}),
    tenant: '',
    aggregate: { bc: '', type: '', id: record.streamId },
    ...(Object.keys(rest).length === 0 ? {} : { headers: rest }),
  };
}

/** JSON has no bytes: data of another kind reads as `{ "$bytes": "<base64>" }`. */
function payloadOf(record: ClientRecord): string {
  const data: unknown = record.data;
  if (data instanceof Uint8Array) return JSON.stringify({ $bytes: base64(data) });
  return JSON.stringify(data) ?? 'null';
}

function hasKnownShape(envelope: Record<string, unknown>, textsOnly: boolean): boolean {
  for (const [name, value] of Object.entries(envelope)) {
    if (texts.has(name) ? typeof value !== 'string' : !objects.has(name)) return false;
    if (objects.has(name) && (typeof value !== 'object' || value === null)) return false;
    // Halves of surrogate pairs survive as escapes in JSON, but not as a text on the wire.
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

/** What multi-stream append wrote as a text. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    // Somebody else's text.
    return value;
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
