// The tenant that a stream belongs to: stored with its first event, because a name with hyphens can fit several tenants.

import { tenantOfStream } from '../contracts/stream-name.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { EventStore } from './event-store.ts';

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

export function ownerMismatch(stream: string): MillraceError {
  return new MillraceError('TENANT_MISMATCH', `stream '${stream}' belongs to another tenant`, {
    details: { stream },
  });
}
