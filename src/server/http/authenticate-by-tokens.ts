// Bearer tokens: our own API keys, and JWTs where somebody else says who people are.

import type { Tokens } from '../../platform/open-tokens.ts';
import type { JwtVerifier } from './jwt-verifier.ts';
import { notAuthenticated, type Authenticate } from './principal.ts';

/** Undefined `jwt`: API keys only. */
export function authenticateByTokens(
  tokens: Pick<Tokens, 'verify'>,
  jwt?: JwtVerifier,
): Authenticate {
  return async (authorization) => {
    if (authorization === undefined) return undefined;
    const secret = /^bearer +(\S+)$/i.exec(authorization)?.[1];
    if (secret === undefined) throw notAuthenticated("send 'Authorization: Bearer <token>'");
    if (jwt !== undefined && secret.split('.').length === 3) return jwt.verify(secret);
    const verified = tokens.verify(secret);
    if (verified === undefined) throw notAuthenticated('the token is not known, or not any more');
    const { token, ended } = verified;
    const { name, scopes, tenant } = token;
    return { kind: 'token', name, scopes, ended, ...(tenant === undefined ? {} : { tenant }) };
  };
}
