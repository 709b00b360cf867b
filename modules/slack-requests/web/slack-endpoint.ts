// What all routes of the module have in common: the tenant of the credentials, and commands as a part of the
// request's flow.

import { buildIdempotencyKey, type NewCommand, Type } from 'millrace/contracts';
import { createIds, hasCode, idFromKey, MillraceError } from 'millrace/foundation';
import {
  flowHeadersShown,
  flowOf,
  tenantFor,
  type ApiRequest,
  type WebContext,
} from 'millrace/platform';
import type { Projection } from 'millrace/projections';

export const root = '/api/v1/slack';
export const idText = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._-]+$' });
/** Of routes that change something. */
export const headersShown = {
  ...flowHeadersShown,
  'X-Tenant-Id': 'Where the token is for all tenants.',
};
export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
  cursor: Type.Optional(Type.String({ maxLength: 500 })),
};

export type Outcome = Awaited<ReturnType<WebContext['handle']>>;
type Asking = Pick<ApiRequest, 'headers' | 'principal' | 'signal'>;

const ids = createIds();

export function tenantOf({ principal, headers }: Asking): string {
  return tenantFor(principal, headers['x-tenant-id']);
}

export function send(
  { handle }: Pick<WebContext, 'handle'>,
  request: Asking,
  wanted: { readonly id: string; readonly command: NewCommand; readonly key?: string },
): Promise<Outcome> {
  const { id, command, key } = wanted;
  return handle({
    ...flowOf(request),
    tenant: tenantOf(request),
    id,
    command,
    signal: request.signal,
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(request.principal === undefined ? {} : { user: { id: request.principal.name } }),
  });
}

/** With `Idempotency-Key`, a repeat is the same request; without, each is a new one. */
export function newRequestId(request: Asking): { readonly id: string; readonly key?: string } {
  const given = request.headers['idempotency-key'];
  if (given === undefined) return { id: ids.next() };
  const key = buildIdempotencyKey({
    tenant: tenantOf(request),
    service: 'slack-requests',
    operation: 'create',
    naturalKey: given,
  });
  return { id: idFromKey(key), key };
}

/** So that whoever asks next sees it; where nobody projects right now, that one is told later. */
export async function settled(
  { waitFor }: Pick<WebContext, 'waitFor'>,
  projection: Projection,
  { position }: Outcome,
): Promise<void> {
  if (position === undefined) return;
  try {
    await waitFor(projection, position, { timeoutMs: 3_000 });
  } catch (error) {
    if (!hasCode(error, 'WAIT_TIMEOUT')) throw error;
  }
}

export function flowHeader({ events }: Outcome): Readonly<Record<string, string>> {
  const correlationId = events[0]?.correlationId;
  return correlationId === undefined ? {} : { 'x-correlation-id': correlationId };
}

export function notFound(what: string): MillraceError {
  return new MillraceError('NOT_FOUND', `there is no such ${what}`);
}
