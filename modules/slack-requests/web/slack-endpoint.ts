// Shared by all routes of the module: the tenant, sending commands in the flow of the request, waiting for projections.

import { buildIdempotencyKey, Type, type NewCommand } from 'millrace/contracts';
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
/** For routes that change something. */
export const headersShown = {
  ...flowHeadersShown,
  'X-Tenant-Id': 'Required with a token for all tenants.',
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
  wanted: { readonly id: string; readonly command: NewCommand; readonly key?: string | undefined },
): Promise<Outcome> {
  const { id, command, key } = wanted;
  return handle({
    ...flowOf(request),
    tenant: tenantOf(request),
    id,
    command,
    signal: request.signal,
    idempotencyKey: key,
    user: request.principal && { id: request.principal.name },
  });
}

/** With `Idempotency-Key`, a repeated request gets the same id; without, a new one. */
export function newRequestId(request: Asking): {
  readonly id: string;
  readonly key?: string | undefined;
} {
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

/** Waits until the projection shows the change, for 3 s at most. */
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
  return new MillraceError('NOT_FOUND', `Unknown ${what}.`);
}
