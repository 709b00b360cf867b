// Who asks, and what that lets them do. Every route says what it needs; every tenant is checked here.

import { MillraceError } from '../../foundation/error.ts';
import type { TokenScope } from '../tokens/token.ts';

export interface Principal {
  readonly kind: 'token' | 'jwt';
  /** The name of a token, the subject of a JWT: stays the same when its credentials are renewed. */
  readonly name: string;
  /** Of a JWT, `preferred_username`: how people call this one. */
  readonly username?: string;
  /** Of a JWT; not one that its issuer says is unverified. */
  readonly email?: string;
  /** Absent: all tenants. */
  readonly tenant?: string;
  readonly scopes: readonly TokenScope[];
  /** Fires when it is revoked or expires: what was let in by it has to end. */
  readonly ended?: AbortSignal;
  /** Of a JWT: after that it is as if it had been revoked. */
  readonly expiresAtMs?: number;
}

/** Undefined: no credentials were given. Throws `NOT_AUTHENTICATED` for those that are not good. */
export type Authenticate = (authorization: string | undefined) => Promise<Principal | undefined>;

/** What a route needs: nothing, credentials of whatever scope (the route has rules of its own), or a scope. */
export type Access = 'anonymous' | 'known' | Exclude<TokenScope, 'use'>;

export function checkAccess(access: Access, principal: Principal | undefined): void {
  if (access === 'anonymous') return;
  if (principal === undefined) throw notAuthenticated('a bearer token is needed');
  if (access === 'known') return;
  const may = principal.scopes.includes(access) || principal.scopes.includes('admin');
  if (may) return;
  throw new MillraceError('NOT_ALLOWED', `this needs the scope '${access}'`, {
    details: { scope: access },
  });
}

/**
 * The tenant that a request is about: the one that was asked for, if the caller may see it, else the
 * caller's own.
 *
 * @example
 * import { tenantFor, type ApiRequest } from 'millrace/platform';
 *
 * const tenantOf = ({ principal, headers }: ApiRequest): string =>
 *   tenantFor(principal, headers['x-tenant-id']);
 */
export function tenantFor(principal: Principal | undefined, asked: string | undefined): string {
  const own = principal?.tenant;
  if (asked === undefined || asked === '') {
    if (own !== undefined) return own;
    throw new MillraceError('REQUEST_INVALID', 'say which tenant: X-Tenant-Id', {
      details: { field: 'x-tenant-id' },
    });
  }
  if (own === undefined || own === asked) return asked;
  throw new MillraceError('NOT_ALLOWED', 'these credentials are of another tenant', {
    details: { field: 'x-tenant-id' },
  });
}

export function notAuthenticated(reason: string): MillraceError {
  return new MillraceError('NOT_AUTHENTICATED', reason);
}
