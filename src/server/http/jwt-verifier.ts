// JWTs of an identity provider: `jose` checks signature, audience and expiry; this file maps the claims to
// permissions.

import { createSecretKey } from 'node:crypto';
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { checkTenant } from '../../contracts/tenant.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { JwtSettings } from '../../platform/config/millrace-config.ts';
import { tokenScopes, type TokenScope } from '../../platform/tokens/scopes.ts';
import { notAuthenticated, type Principal } from '../../platform/modules/principal.ts';

export interface JwtVerifier {
  /** Rejects with `NOT_AUTHENTICATED`, or with `IDENTITY_UNAVAILABLE` if the keys are not available. */
  verify(token: string): Promise<Principal>;
}

const secretBytesMin = 32;
const everyTenant = '*';

export async function createJwtVerifier(
  options: JwtSettings,
  observer: Observer = silentObserver,
): Promise<JwtVerifier> {
  const {
    secret,
    jwksUrl,
    audience,
    issuer,
    clockSkewSeconds = 30,
    tenantClaim = 'tenant',
  } = options;
  checkOptions(options);
  const { createRemoteJWKSet, jwtVerify } = await loadDriver('jose', () => import('jose'));
  const rules = {
    audience,
    clockTolerance: clockSkewSeconds,
    requiredClaims: ['exp', 'sub'],
    ...(issuer === undefined ? {} : { issuer }),
  };
  const check =
    jwksUrl === undefined
      ? async (token: string) =>
          jwtVerify(token, createSecretKey(Buffer.from(secret ?? '')), {
            ...rules,
            algorithms: ['HS256'],
          })
      : (
          (keys) => async (token: string) =>
            jwtVerify(token, keys, { ...rules, algorithms: ['RS256', 'ES256'] })
        )(
          reportingOutages(
            createRemoteJWKSet(new URL(jwksUrl), {
              timeoutDuration: 5_000,
              cooldownDuration: 30_000,
            }),
            observer,
          ),
        );
  return {
    async verify(token) {
      let payload: JWTPayload;
      try {
        ({ payload } = await check(token));
      } catch (error) {
        if (hasCode(error, 'IDENTITY_UNAVAILABLE')) throw error;
        // The error omits the reason, which would help attackers only.
        throw Object.assign(notAuthenticated('invalid JWT'), { cause: error });
      }
      return principalOf(payload, tenantClaim);
    },
  };
}

/** Errors that mean an invalid token; other errors say nothing about the token. */
const verdicts = new Set<unknown>([
  'ERR_JOSE_NOT_SUPPORTED',
  'ERR_JWKS_MULTIPLE_MATCHING_KEYS',
  'ERR_JWKS_NO_MATCHING_KEY',
]);

/** An unavailable provider must not cause a 401: users would have to sign in again. */
function reportingOutages(keys: JWTVerifyGetKey, observer: Observer): JWTVerifyGetKey {
  let isUnavailable = false;
  const report = (isNow: boolean, error?: unknown): void => {
    if (isNow === isUnavailable) return;
    isUnavailable = isNow;
    if (isNow) observer.log?.warn({ err: error }, 'identity provider keys unavailable');
    else observer.log?.info({}, 'identity provider keys available');
  };
  return async (header, token) => {
    try {
      const key = await keys(header, token);
      report(false);
      return key;
    } catch (error) {
      if (error instanceof Error && 'code' in error && verdicts.has(error.code)) throw error;
      report(true, error);
      const message = 'the keys of the identity provider could not be fetched';
      throw new MillraceError('IDENTITY_UNAVAILABLE', message, { cause: error });
    }
  };
}

/** The tenant claim is required; an asterisk stands for all tenants. */
function principalOf(payload: JWTPayload, tenantClaim: string): Principal {
  const tenant = payload[tenantClaim];
  if (typeof tenant !== 'string') throw notAuthenticated(`the JWT has no claim '${tenantClaim}'`);
  if (tenant !== everyTenant && !isTenant(tenant)) {
    throw notAuthenticated(`the claim '${tenantClaim}' of the JWT is not a valid tenant`);
  }
  const { preferred_username: username, email, email_verified: isVerified } = payload;
  return {
    kind: 'jwt',
    name: String(payload.sub),
    ...(typeof username === 'string' ? { username } : {}),
    ...(typeof email === 'string' && isVerified !== false ? { email } : {}),
    scopes: scopesOf(payload),
    ...(tenant === everyTenant ? {} : { tenant }),
    ...(payload.exp === undefined ? {} : { expiresAtMs: payload.exp * 1_000 }),
  };
}

function isTenant(name: string): boolean {
  try {
    checkTenant(name);
    return true;
  } catch (error) {
    if (hasCode(error, 'NAME_INVALID')) return false;
    throw error;
  }
}

/**
 * `scope` as in OAuth, or a list in `scopes` or `roles`; each may have the prefix `millrace:`. A JWT without any of our
 * scopes is that of a person.
 */
function scopesOf(payload: JWTPayload): readonly TokenScope[] {
  const words = [payload['scope'], payload['scopes'], payload['roles']].flatMap((claim) =>
    typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [],
  );
  const names = new Set(words.map((word) => String(word).replace(/^millrace:/, '')));
  const found = tokenScopes.filter((scope) => names.has(scope));
  return found.length === 0 ? ['use'] : found;
}

function checkOptions({ secret, jwksUrl, audience }: JwtSettings): void {
  const problem =
    (secret === undefined) === (jwksUrl === undefined)
      ? 'set either a secret (HS256) or the URL of a key set (RS256, ES256)'
      : secret !== undefined && Buffer.byteLength(secret) < secretBytesMin
        ? `the secret must have at least ${secretBytesMin} bytes`
        : jwksUrl !== undefined && !URL.canParse(jwksUrl)
          ? 'the URL of the key set is invalid'
          : audience === ''
            ? 'the audience is empty'
            : undefined;
  if (problem === undefined) return;
  throw new MillraceError('CONFIG_INVALID', `JWT: ${problem}`, { details: { field: 'jwt' } });
}
