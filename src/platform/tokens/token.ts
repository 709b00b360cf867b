// API keys: name, scopes, tenant and expiry.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { MillraceError } from '../../foundation/error.ts';
import { createTenantDirectory } from '../../contracts/tenant.ts';
import type { Principal } from '../modules/principal.ts';
import { tokenScopes, type TokenScope } from './scopes.ts';

export interface Token {
  readonly id: string;
  /** Unique among active tokens. */
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  /** Absent: all tenants. */
  readonly tenant?: string;
  readonly createdAt: string;
  readonly createdBy?: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
  readonly revokedBy?: string;
  /** Absent: an API key. A link is exchanged once for a session of the console. */
  readonly kind?: 'link' | 'session';
  /** The id of the token that a link or session was created from; both are revoked with it. */
  readonly parent?: string;
  /** The caller that a session acts for. */
  readonly actor?: SessionActor;
}

/** Fields of the credentials that a session was created from. */
export type SessionActor = Pick<Principal, 'email' | 'kind' | 'name' | 'person' | 'username'>;

export interface VerifiedToken {
  readonly token: Token;
  /** Fires when the token is revoked or expires: connections that use it must be closed. */
  readonly ended: AbortSignal;
}

export interface NewToken {
  /** Lower-case letters, digits, `.`, `_` and `-`. */
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  /** Absent: all tenants. */
  readonly tenant?: string | undefined;
  /** ISO 8601. Absent: the token does not expire. */
  readonly expiresAt?: string | undefined;
  /** The creator, for the log. */
  readonly by?: string | undefined;
}

export type TokenState = 'live' | 'expired' | 'revoked';

export const tokenLimits = {
  nameCharsMax: 60,
  byCharsMax: 120,
  tokensMax: 10_000,
} as const;

/**
 * The state of a token.
 *
 * @example
 * import { tokenState, type Token } from 'millrace/platform';
 *
 * const isLive = (token: Token): boolean => tokenState(token, Date.now()) === 'live';
 */
export function tokenState({ expiresAt, revokedAt }: Token, nowMs: number): TokenState {
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && Date.parse(expiresAt) <= nowMs ? 'expired' : 'live';
}

export function checkNewToken(wanted: NewToken, nowMs: number): void {
  const { name, scopes, tenant, expiresAt, by } = wanted;
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(name) || name.length > tokenLimits.nameCharsMax) {
    throw tokenInvalid(
      'name',
      `'${name}' must be lower-case letters, digits, '.', '_' and '-', at most ${tokenLimits.nameCharsMax}`,
    );
  }
  if (scopes.length === 0) throw tokenInvalid('scopes', 'a token needs at least one scope');
  const unknown = scopes.find((scope) => !tokenScopes.includes(scope));
  if (unknown !== undefined) {
    throw tokenInvalid('scopes', `unknown scope '${unknown}'; known: ${tokenScopes.join(', ')}`);
  }
  if (tenant !== undefined) createTenantDirectory([tenant]);
  if (by !== undefined && by.length > tokenLimits.byCharsMax) {
    throw tokenInvalid('by', `has more than ${tokenLimits.byCharsMax} characters`);
  }
  if (expiresAt === undefined) return;
  const atMs = Date.parse(expiresAt);
  if (Number.isNaN(atMs)) throw tokenInvalid('expiresAt', `'${expiresAt}' is not a valid time`);
  if (atMs <= nowMs) throw tokenInvalid('expiresAt', `'${expiresAt}' is in the past`);
}

export function tokenInvalid(field: string, reason: string): MillraceError {
  return new MillraceError('TOKEN_INVALID', `token: ${field}: ${reason}`, {
    details: { field, reason },
  });
}

export function tokenUnknown(nameOrId: string): MillraceError {
  return new MillraceError('TOKEN_UNKNOWN', `unknown or revoked token '${nameOrId}'`, {
    details: { token: nameOrId },
  });
}

/**
 * A secret is shown once and stored as a hash. It contains the token's id, so only one hash is compared. 256 random
 * bits cannot be guessed, so no slow hash is needed.
 */
const secretShape =
  /^mr_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

export function createTokenSecret(tokenId: string): string {
  return `mr_${tokenId.replaceAll('-', '')}_${randomBytes(32).toString('base64url')}`;
}

/** Undefined: the string is not a secret of Millrace. */
export function tokenIdOf(secret: string): string | undefined {
  const found = secretShape.exec(secret);
  if (found === null) return undefined;
  const [, time, low, version, variant, node] = found;
  return `${time}-${low}-${version}-${variant}-${node}`;
}

export function hashTokenSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

export function fitsTokenHash(secret: string, keptHash: string): boolean {
  const given = hash('sha256', secret, 'buffer');
  const stored = Buffer.from(keptHash, 'hex');
  return given.length === stored.length && timingSafeEqual(given, stored);
}
