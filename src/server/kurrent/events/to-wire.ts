// Converts stored events to the wire format. Pure; `from-wire.ts` is the reverse.

import { markHeader, type Mark } from '../../../contracts/event-form.ts';
import { idFromKey } from '../../../foundation/ids.ts';
import { isForgotten } from '../../../store/erasure.ts';
import { softDeleted } from '../../../store/expected-revision.ts';
import { toSequence } from '../../../store/position.ts';
import { asWritten, type RecordedEvent } from '../../../store/recorded-event.ts';
import { metadataType, tombstoneType } from '../../../store/stream-metadata.ts';
import type { WireReadEvent, WireRecordedEvent } from '../protocol/shared-messages.ts';
import type { Long } from '../protocol/wire-number.ts';
import { toUuid, wireUuid } from '../uuid.ts';
import { binaryType, jsonType } from './from-wire.ts';
import { nativeMetadata } from './native-metadata.ts';

/** An event that is read directly or through a link; the target of a link may be deleted. */
export interface ReadEvent {
  readonly event: RecordedEvent | undefined;
  readonly link?: RecordedEvent | undefined;
}

export interface ToWireOptions {
  readonly structuredIds: boolean;
  /** Removes secrets. Absent: the reader may see them. */
  readonly hide?: ((event: RecordedEvent) => RecordedEvent) | undefined;
}

const none = Buffer.alloc(0);
export const linkType = '$>';

export function toWireEvent(read: ReadEvent, options: ToWireOptions): WireReadEvent {
  const { event, link } = read;
  const original = link ?? event;
  return {
    event: event && toWire(event, options),
    link: link && toWire(link, options),
    commitPosition: original && toSequence(original.position),
  };
}

function toWire(recorded: RecordedEvent, options: ToWireOptions): WireRecordedEvent {
  const { structuredIds, hide } = options;
  const event = hide?.(recorded) ?? recorded;
  const { data, metadata, isJson } = contentOf(event);
  const position = toSequence(event.position);
  return {
    id: wireUuid(toUuid(event.eventId), structuredIds),
    streamIdentifier: { streamName: Buffer.from(event.stream) },
    streamRevision: isTombstone(event) ? tombstoneRevision : event.revision,
    preparePosition: position,
    commitPosition: position,
    metadata: {
      type: event.type,
      // 100-nanosecond ticks since the Unix epoch.
      created: `${Date.parse(event.recordedAt)}0000`,
      'content-type': isJson ? jsonType : binaryType,
    },
    customMetadata: metadata,
    data,
  };
}

export interface Content {
  readonly data: Buffer;
  readonly metadata: Buffer;
  readonly isJson: boolean;
}

export function contentOf(read: RecordedEvent): Content {
  const event = asWritten(read);
  const mark = event.headers?.[markHeader] as Mark | undefined;
  const forgotten = isForgotten(event.payload);
  if (isTombstone(event)) return { data: none, metadata: none, isJson: false };
  if (mark === undefined) {
    const metadata = isSystem(event) ? none : Buffer.from(nativeMetadata(event));
    return { data: nativeData(event), metadata, isJson: true };
  }
  return {
    data: forgotten ? json(event.payload) : dataOf(event.payload, mark),
    metadata: metadataOf(event.headers ?? {}, mark),
    isJson: mark.json || forgotten,
  };
}

/** The correlation id for consumer strategies: only one that a client has set. */
export function correlationOf(read: RecordedEvent): string | undefined {
  const event = asWritten(read);
  const { headers, correlationId, eventId } = event;
  if (headers?.[markHeader] === undefined) return isSystem(event) ? undefined : correlationId;
  return correlationId === eventId ? undefined : correlationId;
}

/** The link of an index stream, generated while reading. */
export function linkTo(event: RecordedEvent, stream: string): RecordedEvent {
  const revision = toSequence(event.position);
  return {
    ...event,
    type: linkType,
    eventId: idFromKey(`${stream}|${revision}`),
    stream,
    revision,
    headers: { [markHeader]: { json: false, data: 'bytes', metadata: 'none' } satisfies Mark },
    payload: { $bytes: Buffer.from(`${event.revision}@${event.stream}`).toString('base64') },
  };
}

/** KurrentDB stores a tombstone as an empty event with the highest revision, 2^63 − 1. */
function isTombstone(event: RecordedEvent): boolean {
  return event.type === tombstoneType && isSystem(event);
}

const tombstoneRevision: Long = { low: -1, high: 0x7fff_ffff, unsigned: true };

function isSystem(event: RecordedEvent): boolean {
  return event.type.startsWith('$') && event.tenant === '';
}

/** The number of the store for a soft delete differs from that of the protocol. */
function nativeData({ type, payload }: RecordedEvent): Buffer {
  const text = JSON.stringify(payload);
  return Buffer.from(
    type === metadataType
      ? text.replace(`"$tb":${softDeleted}`, '"$tb":9223372036854775807')
      : text,
  );
}

function dataOf(payload: unknown, { data }: Mark): Buffer {
  if (data === undefined) return json(payload);
  if (data !== 'bytes') return Buffer.from(data.text);
  return Buffer.from((payload as { readonly $bytes: string }).$bytes, 'base64');
}

function metadataOf(headers: Readonly<Record<string, unknown>>, { metadata }: Mark): Buffer {
  if (metadata === 'none') return none;
  if (metadata === undefined) {
    const { [markHeader]: _mark, ...members } = headers;
    return json(members);
  }
  return 'text' in metadata ? Buffer.from(metadata.text) : Buffer.from(metadata.base64, 'base64');
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
