// The part of an envelope that engines store as one JSON string: a list, because member names would take
// more than half of the space, without the values that the stream name contains.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { kebabCase } from '../contracts/identifier.ts';

export type EventMeta = Omit<DomainEventEnvelope, 'type' | 'eventId' | 'payload'>;

/** Null or absent: the envelope has no such value, or the stream name contains it. */
type MetaList = readonly [
  occurredAt: string,
  correlationId: string,
  causationId?: string | null,
  idempotencyKey?: string | null,
  user?: EventMeta['user'] | null,
  headers?: EventMeta['headers'] | null,
  tenant?: string | null,
  aggregate?: EventMeta['aggregate'] | null,
];

/** Encodes everything except type, id and payload, for an event of this stream. */
export function encodeMeta(stream: string, envelope: DomainEventEnvelope): string {
  const { occurredAt, correlationId, causationId, idempotencyKey } = envelope;
  const { tenant, aggregate, user, headers } = envelope;
  if (!fitsList(envelope)) {
    const named: EventMeta = { occurredAt, correlationId, tenant, aggregate };
    return JSON.stringify({ ...named, causationId, idempotencyKey, user, headers });
  }
  const address = addressOf(stream);
  const ownTenant = address?.tenant === tenant ? null : tenant;
  const ownAggregate =
    ownTenant === null && address !== undefined && isSame(aggregate, address) ? null : aggregate;
  const list: MetaList = [
    occurredAt,
    correlationId,
    causationId ?? null,
    idempotencyKey ?? null,
    user ?? null,
    headers ?? null,
    ownTenant,
    ownAggregate,
  ];
  const text = JSON.stringify(list);
  let end = text.length - 1;
  while (text.endsWith(',null', end)) end -= ',null'.length;
  return end === text.length - 1 ? text : `${text.slice(0, end)}]`;
}

/** The decoded metadata and stream name. `named`: an envelope of another shape, from a store with open names. */
type ReadMeta =
  | {
      readonly list: MetaList;
      readonly tenant: string;
      readonly aggregate: EventMeta['aggregate'];
    }
  | { readonly list: undefined; readonly named: EventMeta };

/** For callers that build the whole event in one step. */
export function readMeta(stream: string, text: string): ReadMeta {
  const list = JSON.parse(text) as MetaList | EventMeta;
  if (!isList(list)) return { list: undefined, named: list };
  const { 6: tenant = null, 7: aggregate = null } = list;
  const address = tenant === null || aggregate === null ? addressOf(stream) : undefined;
  return {
    list,
    tenant: tenant ?? address?.tenant ?? '',
    aggregate: aggregate ?? {
      bc: address?.bc ?? '',
      type: address?.type ?? '',
      id: address?.id ?? '',
    },
  };
}

/** The reverse of `encodeMeta`. Stores with open names accept envelopes of any shape. */
export function decodeMeta(stream: string, text: string): EventMeta {
  const read = readMeta(stream, text);
  if (read.list === undefined) return read.named;
  const [occurredAt, correlationId] = read.list;
  const { tenant, aggregate } = read;
  return addRest({ occurredAt, correlationId, tenant, aggregate }, read.list);
}

/** Assigns members one by one: conditional spreads would be slower than the parsing. */
export function addRest<Event extends EventMeta>(event: Event, list: MetaList): Event {
  const [, , causationId = null, idempotencyKey = null, user = null, headers = null] = list;
  const open: { -readonly [Key in keyof EventMeta]: EventMeta[Key] } = event;
  if (causationId !== null) open.causationId = causationId;
  if (idempotencyKey !== null) open.idempotencyKey = idempotencyKey;
  if (user !== null) open.user = user;
  if (headers !== null) open.headers = headers;
  return event;
}

function isList(parsed: MetaList | EventMeta): parsed is MetaList {
  return Array.isArray(parsed);
}

function fitsList({
  occurredAt,
  correlationId,
  causationId,
  idempotencyKey,
  tenant,
  aggregate,
  user,
  headers,
}: DomainEventEnvelope): boolean {
  return (
    typeof occurredAt === 'string' &&
    typeof correlationId === 'string' &&
    (causationId === undefined || typeof causationId === 'string') &&
    (idempotencyKey === undefined || typeof idempotencyKey === 'string') &&
    typeof tenant === 'string' &&
    isObject(aggregate) &&
    (user === undefined || isObject(user)) &&
    (headers === undefined || isObject(headers))
  );
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function isSame(aggregate: EventMeta['aggregate'], address: StreamAddress): boolean {
  const { bc, type, id } = aggregate;
  if (bc !== address.bc || type !== address.type || id !== address.id) return false;
  // More members, such as a version, do not fit the short form.
  return Object.keys(aggregate).length === 3;
}

interface StreamAddress {
  readonly bc: string;
  readonly type: string;
  readonly tenant: string;
  readonly id: string;
}

/** Maximum number of cached categories. */
const categoriesMax = 1_000;
const categories = new Map<string, Pick<StreamAddress, 'bc' | 'type'>>();
const categoryShape = /^([a-z][a-zA-Z0-9]*)\.([a-z][a-zA-Z0-9]*)\.v[0-9]+$/;

let lastStream = '';
let lastAddress: StreamAddress | undefined;

/** Splits the stream name without validation; callers compare the result with the envelope. */
function addressOf(stream: string): StreamAddress | undefined {
  // Most events of a page or append belong to the same stream.
  if (stream !== lastStream) {
    lastAddress = readAddress(stream);
    lastStream = stream;
  }
  return lastAddress;
}

function readAddress(stream: string): StreamAddress | undefined {
  const categoryEnd = stream.indexOf('-');
  const tenantEnd = stream.indexOf('-', categoryEnd + 1);
  if (categoryEnd === -1 || tenantEnd === -1) return undefined;
  const category = stream.slice(0, categoryEnd);
  let names = categories.get(category);
  if (names === undefined) {
    const [, bc, type] = categoryShape.exec(category) ?? [];
    if (bc === undefined || type === undefined) return undefined;
    names = { bc: kebabCase(bc), type: kebabCase(type) };
    if (categories.size < categoriesMax) categories.set(category, names);
  }
  return {
    bc: names.bc,
    type: names.type,
    tenant: stream.slice(categoryEnd + 1, tenantEnd),
    id: stream.slice(tenantEnd + 1),
  };
}
