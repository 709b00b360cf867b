// Shared by the routes of the API: the platform, common fields, the tenant of a request, and access to streams.

import { MillraceError } from '../../foundation/error.ts';
import type { Platform } from '../../platform/create-platform.ts';
import { isKeyStream } from '../../store/erasure.ts';
import { parsePosition, type Position } from '../../store/position.ts';
import { tenantFor, type Access } from '../../platform/modules/principal.ts';
import type { TSchema } from 'typebox';
import type { ResponseInfo, ApiRequest, StreamResponse } from '../../platform/modules/route.ts';

export type ApiPlatform = Pick<
  Platform,
  | 'clock'
  | 'delivery'
  | 'documents'
  | 'engines'
  | 'failingShards'
  | 'handle'
  | 'load'
  | 'modules'
  | 'ownerOf'
  | 'processes'
  | 'rebuilds'
  | 'roles'
  | 'sagaAdmin'
  | 'startBulk'
  | 'state'
  | 'subscriptions'
  | 'taskBus'
  | 'tasks'
  | 'tokens'
  | 'traces'
  | 'waitFor'
>;

/** The common fields of routes with one tag, and one access for each method or for both. */
export function routesOf(
  tag: string,
  access: Access | { readonly get: Access; readonly post: Access },
) {
  const { get, post } = typeof access === 'string' ? { get: access, post: access } : access;
  return {
    get: { method: 'GET', tag, access: get },
    post: { method: 'POST', tag, access: post },
  } as const;
}

export function returns(description: string, schema: TSchema): ResponseInfo {
  return { description, schema };
}

type Caller = Pick<ApiRequest, 'headers' | 'principal'>;

export function tenantOf({ headers, principal }: Caller): string {
  return tenantFor(principal, headers['x-tenant-id']);
}

/**
 * Callers see the streams of their tenant. System streams need the scope `admin` for all tenants. The error is the
 * same for streams that do not exist, because names must not leak to other tenants.
 */
export async function checkStreamAccess(
  { ownerOf }: Pick<ApiPlatform, 'ownerOf'>,
  stream: string,
  { principal }: Caller,
): Promise<void> {
  const own = principal?.tenant;
  const isAllowed =
    stream.startsWith('$') || isKeyStream(stream)
      ? own === undefined && principal?.scopes.includes('admin') === true
      : own === undefined || (await ownerOf(stream)) === own;
  if (isAllowed) return;
  throw new MillraceError('NOT_ALLOWED', 'these credentials do not allow access to this stream', {
    details: { field: 'stream' },
  });
}

/** The requested tenant, if the caller has access to it; else the tenant of the caller, if it has one. */
export function tenantWithin(
  { principal }: Pick<ApiRequest, 'principal'>,
  requested: string | undefined,
): string | undefined {
  const own = principal?.tenant;
  if (own === undefined || requested === undefined || requested === own) return own ?? requested;
  throw new MillraceError('NOT_ALLOWED', 'the credentials belong to another tenant', {
    details: { field: 'tenant' },
  });
}

/** Whether the caller has access to data of this tenant. */
export function isWithin(
  { principal }: Pick<ApiRequest, 'principal'>,
  tenant: string | undefined,
): boolean {
  return principal?.tenant === undefined || principal.tenant === tenant;
}

/** A cursor of a list that is ordered by position. */
export function positionOfCursor(cursor: string): Position {
  try {
    return parsePosition(cursor);
  } catch (cause) {
    throw cursorInvalid(cause);
  }
}

export function cursorInvalid(cause?: unknown): MillraceError {
  return new MillraceError(
    'CURSOR_INVALID',
    'cursor is invalid: pass the cursor of the previous page unchanged',
    { details: { field: 'cursor' }, cause },
  );
}

/** A response that is not JSON. */
export function textResponse(contentType: string, text: string): StreamResponse {
  return { contentType, stream: single(text) };
}

async function* single(text: string): AsyncGenerator<string> {
  yield text;
}
