// The tenant that a stream belongs to: stored with its first event, because a name with hyphens can fit several tenants.

import { markHeader } from '../contracts/event-form.ts';
import { isStreamOf, parseStreamName, tenantOfStream } from '../contracts/stream-name.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { EventStore } from './event-store.ts';
import { writtenForm, type RecordedEvent } from './recorded-event.ts';

/** The tenant of a stream; empty: the stream belongs to no tenant. */
export type StreamOwner = (stream: string) => Promise<string>;

const cachedStreamsMax = 10_000;

/**
 * The owner is the tenant of the first event. A stream without events, or with an event of a foreign client that
 * names no tenant, belongs to the tenant in its name, according to the directory. Only stored owners are cached:
 * they never change.
 */
export function createStreamOwner(
  store: Pick<EventStore, 'readStream'>,
  tenants: TenantLookup | undefined,
): StreamOwner {
  const stored = new Map<string, string>();
  /** Shared by concurrent callers, so that their appends keep their order. */
  const pending = new Map<string, Promise<string>>();

  const read = async (stream: string): Promise<string> => {
    try {
      const [first] = await store.readStream(stream, { limit: 1 }).toArray();
      const tenant = first?.tenant ?? '';
      if (tenant === '') return tenantOfStream(stream, tenants);
      const [oldest] = stored.keys();
      if (stored.size >= cachedStreamsMax && oldest !== undefined) stored.delete(oldest);
      stored.set(stream, tenant);
      return tenant;
    } catch (error) {
      if (hasCode(error, 'STREAM_DELETED')) return tenantOfStream(stream, tenants);
      throw error;
    }
  };

  return async (stream) => {
    if (stream.startsWith('$')) return '';
    const known = stored.get(stream) ?? pending.get(stream);
    if (known !== undefined) return known;
    const reading = read(stream).finally(() => pending.delete(stream));
    pending.set(stream, reading);
    return reading;
  };
}

/** The event with the tenant of its stream. */
export type ResolveTenant = (event: RecordedEvent) => RecordedEvent | Promise<RecordedEvent>;

/**
 * Throws if the tenant or the aggregate that the writer of an event named contradicts the stream: `TENANT_MISMATCH` or
 * `ENVELOPE_INVALID`. It needs no directory, so it accepts each tenant that the name of the stream fits.
 */
function checkWritten(event: RecordedEvent, tenants?: TenantLookup): RecordedEvent {
  const { tenant, aggregate, format } = writtenForm(event) ?? {};
  const { stream } = event;
  const owner = tenant === undefined ? '' : tenantOfStream(stream, tenants);
  if (tenant === undefined || owner === '') return event;
  if (!fitsTenant(stream, tenant)) throw contradiction(event, tenant, owner);
  if (format !== 'envelope' || aggregate === undefined) return event;
  if (isStreamOf(stream, tenant, aggregate)) return event;
  const { bc, type, id } = aggregate;
  throw new MillraceError(
    'ENVELOPE_INVALID',
    `the envelope names aggregate '${bc}.${type}' with id '${id}', but it is in stream '${stream}'`,
    { details: { stream, eventId: event.eventId, aggregate } },
  );
}

function fitsTenant(stream: string, tenant: string): boolean {
  return stream.startsWith(`${tenant}-`, stream.indexOf('-') + 1);
}

/**
 * Events that Millrace did not write may name another tenant than their stream, or none. A stream name that fits several
 * tenants belongs to its owner. Throws `TENANT_MISMATCH`: neither tenant may get the event.
 */
export function createTenantResolver(ownerOf: StreamOwner, tenants: TenantLookup): ResolveTenant {
  const check = async (event: RecordedEvent, named: string): Promise<RecordedEvent> => {
    const owner = await ownerOf(event.stream);
    if (owner === named && event.tenant === named) return event;
    throw contradiction(event, named, owner);
  };
  return (event) => {
    const { stream, tenant } = event;
    const named = namedTenant(event);
    const fits = fitsTenant(stream, named);
    checkWritten(event, tenants);
    // A tenant of the directory is no prefix of another one, so the name fits no other tenant.
    if (named === tenant && fits && named !== '' && tenants.has(named)) return event;
    const byName = tenantOfStream(stream, tenants);
    if (byName === '' || (named === tenant && named === byName)) return event;
    if (named !== '') {
      if (!fits) throw contradiction(event, named, byName);
      return check(event, named);
    }
    if (tenant !== '') return event;
    const { bc, agg: type, id } = parseStreamName(stream, tenants);
    return { ...event, tenant: byName, aggregate: { bc, type, id } };
  };
}

/** Resolves the tenants of all events; a list without a promise, unless the owner of a stream must be read. */
export function resolveTenants(
  events: readonly RecordedEvent[],
  resolve: ResolveTenant = checkWritten,
): readonly RecordedEvent[] | Promise<readonly RecordedEvent[]> {
  const resolved = events.map((event) => resolve(event));
  const isReady = (each: RecordedEvent | Promise<RecordedEvent>): each is RecordedEvent =>
    !(each instanceof Promise);
  return resolved.every(isReady)
    ? resolved
    : Promise.all(resolved.map((each) => Promise.resolve(each)));
}

/** The tenant that the writer of the event named; empty: none. */
function namedTenant(event: RecordedEvent): string {
  // Events of clients without metadata have the mark in their headers.
  const isForeign = event.headers?.[markHeader] !== undefined;
  const form = writtenForm(event);
  return form === undefined ? (isForeign ? '' : event.tenant) : (form.tenant ?? '');
}

function contradiction(
  { stream, eventId }: RecordedEvent,
  named: string,
  owner: string,
): MillraceError {
  return new MillraceError(
    'TENANT_MISMATCH',
    `the event names tenant '${named}', but its stream '${stream}' belongs to tenant '${owner}'; a tenant with a hyphen must be in the directory (tenants) before its first event`,
    { details: { stream, eventId, tenant: named, owner } },
  );
}

export function ownerMismatch(stream: string): MillraceError {
  return new MillraceError('TENANT_MISMATCH', `stream '${stream}' belongs to another tenant`, {
    details: { stream },
  });
}
