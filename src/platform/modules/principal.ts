// The caller of a request and its permissions. Each route declares the access that it needs; tenants are checked here.

import { MillraceError } from '../../foundation/error.ts';
import { allowsScope, type TokenScope } from '../tokens/scopes.ts';

export interface Principal {
  readonly kind: 'token' | 'jwt';
  /** The name of a token or the subject of a JWT: stable when credentials are renewed. */
  readonly name: string;
  /** The person that acts, if that is not the name: with JWTs, a token is never the person of its name. */
  readonly person?: string;
  /** The claim `preferred_username` of a JWT. */
  readonly username?: string;
  /** The claim `email` of a JWT, unless its issuer marks it as unverified. */
  readonly email?: string;
  /** Absent: all tenants. */
  readonly tenant?: string;
  readonly scopes: readonly TokenScope[];
  /** The server masks payloads for this caller. */
  readonly isMasked?: boolean;
  /** Fires when the credentials are revoked or expire: connections that use them must be closed. */
  readonly ended?: AbortSignal;
  /** The expiry of a JWT. */
  readonly expiresAtMs?: number;
}

/** Undefined: no credentials. Throws `NOT_AUTHENTICATED` for invalid ones. */
export type Authenticate = (authorization: string | undefined) => Promise<Principal | undefined>;

/** The access of a route: a scope, or none. A route for people (`use`) has its own rules in addition. */
export type Access = 'anonymous' | TokenScope;

export function checkAccess(access: Access, principal: Principal | undefined): void {
  if (access === 'anonymous') return;
  if (principal === undefined) throw notAuthenticated('a bearer token is needed');
  if (allowsScope(principal.scopes, access)) return;
  throw new MillraceError('NOT_ALLOWED', `this needs the scope '${access}'`, {
    details: { scope: access },
  });
}

/** Data that all tenants share needs credentials for all tenants. */
export function checkGlobal({ tenant }: Pick<Principal, 'tenant'> = {}): void {
  if (tenant === undefined) return;
  throw new MillraceError('NOT_ALLOWED', 'this needs credentials for all tenants', {
    details: { tenant },
  });
}

interface Guarded {
  readonly access: Access;
  readonly isGlobal?: boolean | undefined;
}

export function checkRouteAccess(
  { access, isGlobal }: Guarded,
  principal: Principal | undefined,
): void {
  checkAccess(access, principal);
  if (isGlobal === true) checkGlobal(principal);
}

export function mayCall(
  { access, isGlobal }: Guarded,
  { scopes, tenant }: Pick<Principal, 'scopes' | 'tenant'>,
): boolean {
  return (
    (access === 'anonymous' || allowsScope(scopes, access)) &&
    (isGlobal !== true || tenant === undefined)
  );
}

/**
 * The person that acts: a user of collab, a customer.
 *
 * @example
 * import { personOf, type Principal } from 'millrace/platform';
 *
 * const isCustomer = (principal: Principal, id: string): boolean => personOf(principal) === id;
 */
export function personOf({ person, name }: Pick<Principal, 'name' | 'person'>): string {
  return person ?? name;
}

/**
 * The tenant of a request: the requested one, if the caller has access to it, else the caller's.
 *
 * @example
 * import { tenantFor, type ApiRequest } from 'millrace/platform';
 *
 * const tenantOf = ({ principal, headers }: ApiRequest): string =>
 *   tenantFor(principal, headers['x-tenant-id']);
 */
export function tenantFor(principal: Principal | undefined, requested: string | undefined): string {
  const own = principal?.tenant;
  if (requested === undefined || requested === '') {
    if (own !== undefined) return own;
    throw new MillraceError('REQUEST_INVALID', 'the tenant is missing: set X-Tenant-Id', {
      details: { field: 'x-tenant-id' },
    });
  }
  if (own === undefined || own === requested) return requested;
  throw new MillraceError('NOT_ALLOWED', 'the credentials belong to another tenant', {
    details: { field: 'x-tenant-id' },
  });
}

export function notAuthenticated(reason: string): MillraceError {
  return new MillraceError('NOT_AUTHENTICATED', reason);
}
