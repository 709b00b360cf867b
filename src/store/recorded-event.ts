// Events as read from the store: the whole envelope with stream, revision and position.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { markedForm, markHeader, type EventForm } from '../contracts/event-form.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { subjectOf, unseal, type SubjectKeys } from './erasure.ts';
import { addRest, readMeta } from './event-meta.ts';
import { toPosition, type Position } from './position.ts';

export type RecordedEvent<Payload = unknown> = DomainEventEnvelope<Payload> & {
  readonly stream: string;
  /** Counts from 0 within the stream, without gaps. */
  readonly revision: number;
  readonly position: Position;
  /** When the event was stored, ISO 8601. */
  readonly recordedAt: string;
  /**
   * Why the stored event cannot be read; its payload is then null. Subscriptions and `findEvent` return such events,
   * so that one of them does not stop a reader; other reads throw `STORE_CORRUPT`.
   */
  readonly unreadable?: string | undefined;
};

/** One row as engines store it: names as columns, the rest of the envelope as `meta`. */
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

export function toRecordedEvent(row: StoredRow): RecordedEvent {
  const meta = readMeta(row.stream, row.meta);
  const payload = JSON.parse(row.payload) as unknown;
  const { type, eventId, stream, revision } = row;
  const position = toPosition(row.sequence);
  const recordedAt = toIsoTime(row.recordedAtMs);
  if (meta.list === undefined) {
    return { type, eventId, ...meta.named, payload, stream, revision, position, recordedAt };
  }
  const { list, tenant, aggregate } = meta;
  const event: RecordedEvent = {
    type,
    eventId,
    occurredAt: list[0],
    correlationId: list[1],
    tenant,
    aggregate,
    payload,
    stream,
    revision,
    position,
    recordedAt,
  };
  return addRest(event, list);
}

/** Like `decodeRows`, with a placeholder for each event that cannot be read. */
export async function decodeReadable(
  rows: readonly StoredRow[],
  subjectKeys: SubjectKeys,
): Promise<RecordedEvent[]> {
  try {
    return await decodeRows(rows, subjectKeys);
  } catch (error) {
    if (!hasCode(error, 'STORE_CORRUPT')) throw error;
    const [row] = rows;
    if (row !== undefined && rows.length === 1) return [placeholderOf(row, error.message)];
  }
  const events: RecordedEvent[] = [];
  for (const row of rows) events.push(...(await decodeReadable([row], subjectKeys)));
  return events;
}

function placeholderOf(row: StoredRow, unreadable: string): RecordedEvent {
  const { type, eventId, stream, revision } = row;
  const recordedAt = toIsoTime(row.recordedAtMs);
  return {
    type,
    eventId,
    occurredAt: recordedAt,
    correlationId: eventId,
    tenant: '',
    aggregate: { bc: '', type: '', id: stream },
    payload: null,
    stream,
    revision,
    position: toPosition(row.sequence),
    recordedAt,
    unreadable,
  };
}

/** Decrypts personal data; the keys of all data subjects in a page are loaded with one call. */
export async function decodeRows(
  rows: readonly StoredRow[],
  subjectKeys: SubjectKeys,
): Promise<RecordedEvent[]> {
  const events = rows.map(readRow);
  const subjects = new Set<string>();
  let isWritten = false;
  for (const event of events) {
    const { headers } = event;
    if (headers === undefined) continue;
    const subject = subjectOf(event);
    if (subject !== undefined) subjects.add(subject);
    isWritten ||= headers[markHeader] !== undefined;
  }
  if (subjects.size === 0) return isWritten ? events.map(readWritten) : events;
  const keys = await subjectKeys.get([...subjects], { create: false });
  return events.map((event) => {
    const subject = subjectOf(event);
    if (subject === undefined) return readWritten(event);
    const payload = unseal(event.payload, { eventId: event.eventId, subject }, keys.get(subject));
    return readWritten({ ...event, payload });
  });
}

/** Only a payload, without metadata. */
function isPlain({ format, payload, ...named }: EventForm, event: RecordedEvent): boolean {
  return format === 'metadata' && payload === event.payload && Object.keys(named).length === 0;
}

interface Written {
  readonly event: RecordedEvent;
  readonly form: EventForm;
}

/** Not a member: a copy with another payload must not restore the written one. */
const written = new WeakMap<RecordedEvent, Written>();

/** The event with the data and metadata that its writer stored, for exports and clients that expect its bytes. */
export function asWritten(event: RecordedEvent): RecordedEvent {
  return written.get(event)?.event ?? event;
}

/** What the writer of an event named; undefined for events of Millrace, and for data without metadata. */
export function writtenForm(event: RecordedEvent): EventForm | undefined {
  return written.get(event)?.form;
}

/**
 * The one place where the form of a stored event is read. The tenant is that of the stream, which `resolveTenants`
 * compares with the one that the writer named; so is the aggregate, unless the stream has a name of other rules.
 */
function readWritten(event: RecordedEvent): RecordedEvent {
  // Records of the system have no envelope.
  const form = event.type.startsWith('$') ? undefined : markedForm(event);
  if (form === undefined || isPlain(form, event)) return event;
  const { format: _format, eventId: _eventId, tenant: _tenant, ...named } = form;
  const { headers: _headers, ...stored } = event;
  const { aggregate = event.aggregate } = named;
  const isNamed = event.aggregate.bc !== '';
  const read: RecordedEvent = {
    ...stored,
    ...named,
    aggregate: isNamed ? { ...aggregate, ...event.aggregate } : aggregate,
  };
  written.set(read, { event, form });
  return read;
}

/** The message of the parser is left out, because it quotes the payload. */
function readRow(row: StoredRow): RecordedEvent {
  try {
    return toRecordedEvent(row);
  } catch {
    const { eventId, stream, revision } = row;
    throw new MillraceError(
      'STORE_CORRUPT',
      `event ${eventId} (revision ${revision} of '${stream}') is not valid JSON`,
      { details: { eventId, stream, revision } },
    );
  }
}

const dayMs = 86_400_000;
let lastDay = Number.NaN;
let lastDate = '';

/** Like `Date.toISOString`, which would take a fifth of the read time. */
export function toIsoTime(ms: number): string {
  const day = Math.floor(ms / dayMs);
  if (day !== lastDay) {
    lastDate = new Date(ms).toISOString().slice(0, -'00:00:00.000Z'.length);
    lastDay = day;
  }
  const rest = ms - day * dayMs;
  const seconds = Math.floor(rest / 1_000);
  const hours = twoDigits(Math.floor(seconds / 3_600));
  const minutes = twoDigits(Math.floor(seconds / 60) % 60);
  const millis = String(rest % 1_000).padStart(3, '0');
  return `${lastDate}${hours}:${minutes}:${twoDigits(seconds % 60)}.${millis}Z`;
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}
