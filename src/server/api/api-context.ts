// What the routes of the API share: the platform, common fields, the tenant of a request, and access to streams.

import { MillraceError } from '../../foundation/error.ts';
import type { Platform } from '../../platform/create-platform.ts';
import { tenantFor, type Access } from '../../platform/modules/principal.ts';
import type { TSchema } from 'typebox';
import type { AnswerInfo, ApiRequest, StreamAnswer } from '../../platform/modules/route.ts';
import { tenantOfStream } from '../../contracts/stream-name.ts';

export type ApiPlatform = Pick<
  Platform,
  | 'clock'
  | 'delivery'
  | 'documents'
  | 'engines'
  | 'handle'
  | 'load'
  | 'modules'
  | 'rebuilds'
  | 'roles'
  | 'sagaAdmin'
  | 'state'
  | 'subscriptions'
  | 'taskBus'
  | 'tasks'
  | 'tokens'
  | 'traces'
  | 'waitFor'
>;

/** The common fields of routes with one tag and one access. */
export function routesOf(tag: string, access: Access) {
  return { get: { method: 'GET', tag, access }, post: { method: 'POST', tag, access } } as const;
}

export function returns(description: string, schema: TSchema): AnswerInfo {
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
export function checkStreamAccess(
  platform: ApiPlatform,
  stream: string,
  { principal }: Caller,
): void {
  const own = principal?.tenant;
  const isSystem = stream.startsWith('$');
  const isAllowed = isSystem
    ? own === undefined && principal?.scopes.includes('admin') === true
    : own === undefined || tenantOfStream(stream, platform.tokens.tenants) === own;
  if (isAllowed) return;
  throw new MillraceError('NOT_ALLOWED', 'these credentials do not allow access to this stream', {
    details: { field: 'stream' },
  });
}

/** An answer that is not JSON. */
export function textAnswer(contentType: string, text: string): StreamAnswer {
  return { contentType, stream: single(text) };
}

async function* single(text: string): AsyncGenerator<string> {
  yield text;
}
