// Tokens as credentials of KurrentDB clients: the user name is the name or id of a token, the password its secret.

import type { Tokens } from '../../platform/tokens/open-tokens.ts';
import type { VerifiedToken } from '../../platform/tokens/token.ts';
import type { KurrentIdentity, KurrentServerOptions } from './kurrent-server.ts';

/**
 * Authenticates callers with tokens, within their scopes and tenant. Revoking or expiry of a token ends its calls.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { openTokens } from 'millrace/platform';
 * import { authenticateByTokens, kurrentStoreOptions, startKurrentServer } from 'millrace/server/kurrent';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db', kurrentStoreOptions);
 * await using tokens = await openTokens(db.store);
 * await using server = await startKurrentServer(db.store, {
 *   port: 0,
 *   authenticate: authenticateByTokens(tokens),
 *   tenants: tokens.tenants,
 * });
 */
export function authenticateByTokens(
  tokens: Pick<Tokens, 'verify'>,
): NonNullable<KurrentServerOptions['authenticate']> {
  return (credentials) => {
    if (credentials === undefined) return undefined;
    const found =
      credentials.kind === 'basic'
        ? tokens.verify(credentials.password, credentials.username)
        : tokens.verify(credentials.token);
    return found === undefined ? undefined : toIdentity(found);
  };
}

function toIdentity({ token: { name, scopes, tenant }, ended }: VerifiedToken): KurrentIdentity {
  return { name, ended, scopes, tenant };
}
