// The forms in which services write events to EventStoreDB. Pure: `readForm` recognizes the form of a written event,
// `writeForm` is the reverse.
//
// | format   | data                                                | metadata                                          |
// |----------|-----------------------------------------------------|---------------------------------------------------|
// | millrace | the payload                                         | the rest of the envelope, always with `aggregate` |
// | envelope | the envelope of the naming document                 | anything                                          |
// | metadata | the payload                                         | the metadata of the outbox document, or any other |

import type { DomainEventEnvelope } from './envelope.ts';
import { parseJson } from '../foundation/parse-json.ts';

export type EventFormat = 'millrace' | 'envelope' | 'metadata';

export const eventFormats: readonly EventFormat[] = ['millrace', 'envelope', 'metadata'];

export interface FormatOptions {
  /**
   * How the data and metadata of new events look to clients of the KurrentDB protocol: `millrace`: the payload, and the
   * envelope as metadata; `envelope`: the envelope as data; `metadata`: the payload, and `correlationId`, `tenantId`,
   * `userId`, `source`, `occurredAt` and `headers` as metadata. Reads recognize all of them. Default: `millrace`.
   */
  readonly eventFormat?: EventFormat | undefined;
}

/** The header of an event whose data and metadata are stored as written; it says how to restore the exact bytes. */
export const markHeader = '$kurrent';

export interface Mark {
  readonly json: boolean;
  /** Absent: the JSON of the payload. `bytes`: base64 in the payload. Otherwise the exact text. */
  readonly data?: 'bytes' | { readonly text: string } | undefined;
  /** Absent: the other headers are the members of the metadata. Otherwise the metadata. */
  readonly metadata?: 'none' | { readonly text: string } | { readonly base64: string } | undefined;
  /** Written by Millrace in this format. */
  readonly format?: EventFormat | undefined;
}

type Members = Readonly<Record<string, unknown>>;

export interface WrittenEvent {
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Members | undefined;
}

/** What the writer of an event named. */
export interface EventForm extends Partial<Omit<DomainEventEnvelope, 'payload' | 'type'>> {
  readonly format: EventFormat;
  readonly payload: unknown;
}

/**
 * Recognizes the form of an event:
 *
 * 1. Metadata with a correlation id, a time, a tenant and an aggregate are those of Millrace: the data is the payload,
 *    even if it looks like an envelope.
 * 2. Data with exactly the members of the naming document's envelope, and with the type of the event itself, is an
 *    envelope. One missing, additional or wrong member, or another type: the data is the payload.
 * 3. Otherwise the data is the payload, and each known member of the metadata is read; the others are headers.
 *
 * @example
 * import { readForm } from 'millrace/contracts';
 *
 * const { payload, tenant } = readForm({
 *   type: 'payment.completed.v1',
 *   data: { amount: 12.5 },
 *   metadata: { correlationId: 'flow-1', tenantId: 'core', source: 'shop' },
 * });
 */
export function readForm({ type, data, metadata = {} }: WrittenEvent): EventForm {
  const own = readOwn(metadata, data);
  if (own !== undefined) return own;
  return isEnvelopeOf(type, data) ? readEnvelope(data, metadata) : readMetadata(metadata, data);
}

/** The data and metadata of a new event. */
export function writeForm(
  event: DomainEventEnvelope,
  format: Exclude<EventFormat, 'millrace'>,
): { readonly data: unknown; readonly metadata: Members } {
  const { correlationId, causationId, tenant, user, headers, occurredAt, aggregate } = event;
  const tools = { $correlationId: correlationId, $causationId: causationId };
  if (format === 'envelope') return { data: defined(event), metadata: defined(tools) };
  return {
    data: event.payload,
    metadata: defined({
      ...tools,
      correlationId,
      tenantId: tenant,
      userId: user?.id,
      source: textOf(headers?.['source']) ?? aggregate.bc,
      occurredAt,
      headers,
      // The document has no members for these; the aggregate also marks the metadata as those of Millrace.
      idempotencyKey: event.idempotencyKey,
      user,
      aggregate,
    }),
  };
}

/** The form of an event that is stored as it was written; undefined: the event has no mark. */
export function markedForm({
  type,
  payload: data,
  headers,
}: Pick<DomainEventEnvelope, 'headers' | 'payload' | 'type'>): EventForm | undefined {
  // A client may write a header of this name.
  const mark = membersOf(headers?.[markHeader]) as Mark | undefined;
  if (headers === undefined || mark === undefined) return undefined;
  return readForm({ type, data, metadata: markedMetadata(headers, mark) });
}

/** Undefined: none, or not an object. */
function markedMetadata(headers: Members, { metadata }: Mark): Members | undefined {
  if (metadata === undefined) {
    const { [markHeader]: _mark, ...members } = headers;
    return members;
  }
  return objectOf(membersOf(metadata)?.['text']);
}

function readOwn(metadata: Members, payload: unknown): EventForm | undefined {
  const { $correlationId, $causationId, occurredAt, idempotencyKey, eventId } = metadata;
  const correlationId = $correlationId ?? metadata['correlationId'];
  const tenant = metadata['tenant'] ?? metadata['tenantId'];
  const aggregate = objectOf(metadata['aggregate']);
  const { bc, type, id } = aggregate ?? {};
  const texts = [correlationId, occurredAt, tenant, bc, type, id];
  if (!texts.every((each) => typeof each === 'string')) return undefined;
  return formOf('millrace', payload, {
    eventId,
    occurredAt,
    correlationId,
    causationId: $causationId,
    idempotencyKey,
    tenant,
    aggregate,
    user: objectOf(metadata['user']),
    headers: objectOf(metadata['headers']),
  });
}

type EnvelopeData = DomainEventEnvelope & Members;

function readEnvelope(data: EnvelopeData, metadata: Members): EventForm {
  const { type: _type, payload, headers, ...named } = data;
  const { headers: more, tenant } = readMetadata(metadata, undefined);
  return formOf('envelope', payload, {
    ...named,
    tenant: oneTenant(named.tenant, tenant),
    correlationId: idOf(named.correlationId),
    causationId: idOf(named.causationId),
    idempotencyKey: named.idempotencyKey ?? undefined,
    user: named.user ?? undefined,
    headers: (headers ?? more) === undefined ? undefined : { ...more, ...headers },
  });
}

/** A member that is not as the documents describe it stays a header. */
function readMetadata(metadata: Members, payload: unknown): EventForm {
  const rest: Record<string, unknown> = { ...metadata };
  const take = <Value>(name: string, read: (value: unknown) => Value | undefined) => {
    const value = read(rest[name]);
    if (value !== undefined) delete rest[name];
    return value;
  };
  const userId = take('userId', textOf);
  const user = take('user', objectOf);
  const correlation = [take('$correlationId', idOf), take('correlationId', idOf)];
  const causation = [take('$causationId', idOf), take('causationId', idOf)];
  const form = {
    occurredAt: take('occurredAt', timeOf),
    correlationId: correlation[0] ?? correlation[1],
    causationId: causation[0] ?? causation[1],
    idempotencyKey: take('idempotencyKey', textOf),
    tenant: oneTenant(take('tenant', textOf), take('tenantId', textOf)),
    user: user ?? (userId === undefined ? undefined : { id: userId }),
  };
  const headers = take('headers', objectOf);
  const all = { ...rest, ...headers };
  return formOf('metadata', payload, {
    ...form,
    headers: Object.keys(all).length === 0 ? undefined : all,
  });
}

/** Two tenants of one event become a name that fits no stream, so that neither tenant gets the event. */
function oneTenant(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other;
  return `${one}, ${other}`;
}

function formOf(format: EventFormat, payload: unknown, named: Members): EventForm {
  return { format, payload, ...defined(named) };
}

type Test = (value: unknown) => boolean;
const isText: Test = (value) => textOf(value) !== undefined;
const isObject: Test = (value) => membersOf(value) !== undefined;
const isAddress: Test = (value) => {
  const { bc, type, id, version } = membersOf(value) ?? {};
  return [bc, type, id].every(isText) && (version === undefined || typeof version === 'number');
};

const required: ReadonlyMap<string, Test> = new Map([
  ['type', isText],
  ['eventId', isText],
  ['occurredAt', (value) => timeOf(value) !== undefined],
  ['correlationId', isText],
  ['tenant', isText],
  ['aggregate', isAddress],
  ['payload', () => true],
]);
/** Null stands for an absent member, as many serializers write it. */
const optional: ReadonlyMap<string, Test> = new Map([
  ['causationId', (value) => value === null || isText(value)],
  ['idempotencyKey', (value) => value === null || isText(value)],
  ['user', (value) => value === null || isObject(value)],
  ['headers', (value) => value === null || isObject(value)],
]);

function isEnvelopeOf(type: string, data: unknown): data is EnvelopeData {
  const members = membersOf(data);
  if (members?.['type'] !== type) return false;
  for (const [name, test] of required) {
    if (!Object.hasOwn(members, name) || !test(members[name])) return false;
  }
  return Object.entries(members).every(
    ([name, value]) => required.has(name) || optional.get(name)?.(value) === true,
  );
}

const charsMax = 255;
/** The limit of the columns and headers that carry a correlation id. */
const idCharsMax = 120;
// oxlint-disable-next-line no-control-regex -- it matches control characters on purpose
const control = /[\u0000-\u001f\u007f]/;

function textOf(value: unknown): string | undefined {
  const isShort = typeof value === 'string' && value !== '' && value.length <= charsMax;
  return isShort && !control.test(value) ? value : undefined;
}

function idOf(value: unknown): string | undefined {
  const text = textOf(value);
  return text === undefined || text.length > idCharsMax ? undefined : text;
}

function timeOf(value: unknown): string | undefined {
  const isTime =
    typeof value === 'string' &&
    value.length <= charsMax &&
    /^\d{4}-\d\d-\d\dT/.test(value) &&
    !Number.isNaN(Date.parse(value));
  return isTime ? value : undefined;
}

/** An object, or its JSON: multi-stream append writes only strings. */
function objectOf(value: unknown): Members | undefined {
  if (typeof value !== 'string') return membersOf(value);
  try {
    return membersOf(parseJson(value));
  } catch {
    // Another writer stored a plain string.
    return undefined;
  }
}

function membersOf(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Members)
    : undefined;
}

function defined(fields: Members): Members {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
