// Converts events of clients to stored envelopes. Pure; `to-wire.ts` is the reverse.

import { isEnvelope, type DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { markHeader, type Mark } from '../../../contracts/event-form.ts';
import { checkSubject } from '../../../store/prepare-append.ts';
import { subjectHeader } from '../../../store/erasure.ts';
import { metadataType } from '../../../store/stream-metadata.ts';
import { hasCode } from '../../../foundation/error.ts';
import { parseJson } from '../../../foundation/parse-json.ts';
import type { WireProposed } from '../protocol/streams-messages.ts';
import { badRequest } from '../rpc-error.ts';
import { toUuid, uuidText } from '../uuid.ts';
import type { EventOrigin } from './event-origin.ts';
import { fromNativeMetadata, nativeMetadata } from './native-metadata.ts';

export const jsonType = 'application/json';
export const binaryType = 'application/octet-stream';

export interface FromWireOptions {
  readonly origin: EventOrigin;
  /** The current time in ISO 8601. */
  readonly now: string;
  /** Stores the bytes unparsed: for JSON that a store rejects, such as deep nesting. */
  readonly opaque?: boolean | undefined;
}

export interface ForeignEvent {
  readonly eventId: string;
  readonly type: string;
  readonly isJson: boolean;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

export function readProposed(proposed: WireProposed): ForeignEvent {
  const type = proposed.metadata['type'] ?? '';
  if (type === '') throw badRequest("an event needs the metadata 'type'");
  return {
    eventId: uuidText(proposed.id),
    type,
    isJson: proposed.metadata['content-type'] === jsonType,
    data: detached(proposed.data),
    metadata: detached(proposed.customMetadata),
  };
}

/** A decoded field is a view of its message: a small one must not keep a large message in memory. */
export function detached(bytes: Uint8Array): Uint8Array {
  // An absent field is an empty array of protobufjs, which has no buffer.
  const isSmallPart = bytes.length > 0 && bytes.buffer.byteLength > 2 * bytes.length + 1_024;
  return isSmallPart ? Buffer.from(bytes) : bytes;
}

export function bytesOf({ type, data, metadata }: ForeignEvent): number {
  return type.length + data.length + metadata.length;
}

/** For JSON without metadata, the most common case. */
const plainHeaders = { [markHeader]: { json: true, metadata: 'none' } satisfies Mark } as const;

export function fromWire(event: ForeignEvent, options: FromWireOptions): DomainEventEnvelope {
  const { eventId, type, isJson } = event;
  const { origin, now } = options;
  const data = options.opaque === true ? opaque(event.data) : storeBytes(event.data, isJson);
  if (data.kind === 'json' && event.metadata.length === 0) {
    const { tenant, aggregate } = origin;
    return {
      type,
      eventId,
      occurredAt: now,
      correlationId: eventId,
      tenant,
      aggregate,
      headers: plainHeaders,
      payload: data.value,
    };
  }
  const metadata =
    event.metadata.length === 0 || options.opaque === true
      ? undefined
      : storeBytes(event.metadata, true);
  const members = metadata?.kind === 'json' ? membersOf(metadata.value) : undefined;
  if (members !== undefined && data.kind === 'json') {
    const native = asNative(event, data.value, members, origin);
    if (native !== undefined) return native;
  }
  const { headers, sealed } = headersOf(event, metadata, members);
  const content = keepData(data, { event, sealed });
  const mark: Mark = { json: isJson, ...content.mark, ...headers.mark };
  const correlated = metadata?.kind === 'text' ? membersOf(metadata.value) : members;
  return {
    type,
    eventId,
    occurredAt: now,
    correlationId: idMember(correlated, '$correlationId') ?? eventId,
    ...optional('causationId', idMember(correlated, '$causationId')),
    ...origin,
    headers: { ...headers.members, [markHeader]: mark },
    payload: content.payload,
  };
}

/** An event that Millrace's KurrentDB adapter sent, recognized by its exact metadata. */
function asNative(
  { eventId, type, metadata }: ForeignEvent,
  payload: unknown,
  members: Readonly<Record<string, unknown>>,
  { tenant }: EventOrigin,
): DomainEventEnvelope | undefined {
  const envelope = fromNativeMetadata(members, { eventId, type, payload });
  // The tenant of an event must be the tenant of its stream.
  if (envelope === undefined || envelope.tenant !== tenant || !isEnvelope(envelope))
    return undefined;
  const exact =
    toUuid(envelope.eventId) === eventId && Buffer.from(nativeMetadata(envelope)).equals(metadata);
  return exact && envelope.headers?.[markHeader] === undefined ? envelope : undefined;
}

function headersOf(
  { metadata: bytes }: ForeignEvent,
  metadata: StoredBytes | undefined,
  members: Readonly<Record<string, unknown>> | undefined,
): {
  readonly headers: {
    readonly members?: Readonly<Record<string, unknown>>;
    readonly mark: Partial<Mark>;
  };
  readonly sealed: boolean;
} {
  if (bytes.length === 0) return { headers: { mark: { metadata: 'none' } }, sealed: false };
  const subject = members?.[subjectHeader];
  const usable =
    members !== undefined &&
    members[markHeader] === undefined &&
    (subject === undefined || isSubject(subject));
  if (usable) return { headers: { members, mark: {} }, sealed: subject !== undefined };
  const original: Mark['metadata'] =
    metadata?.kind === 'text'
      ? { text: metadata.text }
      : { base64: Buffer.from(bytes).toString('base64') };
  return { headers: { mark: { metadata: original } }, sealed: false };
}

function keepData(
  data: StoredBytes,
  { event, sealed }: { readonly event: ForeignEvent; readonly sealed: boolean },
): { readonly payload: unknown; readonly mark: Partial<Mark> } {
  if (data.kind === 'json') return { payload: data.value, mark: {} };
  // Headers are not sealed, so the data of a person must be in the payload.
  if (data.kind === 'text' && !sealed) {
    return { payload: data.value, mark: { data: { text: data.text } } };
  }
  // The store reads the retention from stream metadata, even if the client declares it as binary.
  const retention = event.type === metadataType ? storeBytes(event.data, true) : undefined;
  if (retention?.kind === 'json') return { payload: retention.value, mark: {} };
  const { base64 } = data.kind === 'bytes' ? data : (opaque(event.data) as { base64: string });
  return { payload: { $bytes: base64 }, mark: { data: 'bytes' } };
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

function idMember(
  members: Readonly<Record<string, unknown>> | undefined,
  name: string,
): string | undefined {
  const value = members?.[name];
  return typeof value === 'string' && value !== '' && value.length <= 120 ? value : undefined;
}

function isSubject(value: unknown): boolean {
  try {
    checkSubject(value);
    return true;
  } catch (error) {
    if (hasCode(error, 'NAME_INVALID')) return false;
    throw error;
  }
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]: V });
}

/**
 * Bytes of a client in a store of JSON: as JSON if it serializes to the same bytes, as JSON with the exact text, or as
 * base64.
 */
type StoredBytes =
  /** `JSON.stringify(value)` equals the bytes. */
  | { readonly kind: 'json'; readonly value: unknown }
  /** JSON of another serializer: the value for Millrace readers, the string for clients. */
  | { readonly kind: 'text'; readonly value: unknown; readonly text: string }
  | { readonly kind: 'bytes'; readonly base64: string };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function storeBytes(bytes: Uint8Array, isJson: boolean): StoredBytes {
  const text = isJson && bytes.length > 0 ? exactText(bytes) : undefined;
  if (text === undefined) return opaque(bytes);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    // Not JSON, or nested too deeply to be walked, although the client declared it as JSON.
    return opaque(bytes);
  }
  return JSON.stringify(value) === text ? { kind: 'json', value } : { kind: 'text', value, text };
}

function opaque(bytes: Uint8Array): StoredBytes {
  return { kind: 'bytes', base64: asBuffer(bytes).toString('base64') };
}

/** Undefined: the bytes are not UTF-8, so decoding would change them. */
function exactText(bytes: Uint8Array): string | undefined {
  // A strict decoder takes twice as long, so it runs only if there is a replacement character.
  const text = asBuffer(bytes).toString('utf8');
  if (!text.includes('\ufffd')) return text;
  try {
    return utf8.decode(bytes);
  } catch {
    // The bytes are not valid UTF-8.
    return undefined;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
