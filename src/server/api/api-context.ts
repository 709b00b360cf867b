// What the routes of the API share: the platform, whose clock it is, and the headers that all of them
// read the same way.

import { MillraceError } from '../../foundation/error.ts';
import type { Platform } from '../../platform/create-platform.ts';
import { tenantFor } from '../../platform/modules/principal.ts';
import type { ApiRequest } from '../../platform/modules/route.ts';
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

type Asking = Pick<ApiRequest, 'headers' | 'principal'>;

export function tenantOf({ headers, principal }: Asking): string {
  return tenantFor(principal, headers['x-tenant-id']);
}

/**
 * Whether the caller may see this stream: one of its own tenant; streams of the system are for
 * administrators of the whole. Said as if it were not there: names are not told to strangers.
 */
export function checkStreamAccess(
  platform: ApiPlatform,
  stream: string,
  { principal }: Asking,
): void {
  const own = principal?.tenant;
  const isSystem = stream.startsWith('$');
  const may = isSystem
    ? own === undefined && principal?.scopes.includes('admin') === true
    : own === undefined || tenantOfStream(stream, platform.tokens.tenants) === own;
  if (may) return;
  throw new MillraceError('NOT_ALLOWED', 'these credentials do not reach this stream', {
    details: { field: 'stream' },
  });
}
