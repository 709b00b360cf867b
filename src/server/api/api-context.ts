// What the routes of the API share: the platform, the tenant of a request, access to streams, and plain-text answers.

import { MillraceError } from '../../foundation/error.ts';
import type { Platform } from '../../platform/create-platform.ts';
import { tenantFor } from '../../platform/modules/principal.ts';
import type { ApiRequest, StreamAnswer } from '../../platform/modules/route.ts';
import { tenantOfStream } from '../kurrent/events/event-place.ts';

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
