// Who may do what with whose notifications. Programs by their scopes; a person, who has the scope `use` or comes
// by a JWT, with the inbox of the customer of that name, and no other.

import { MillraceError } from '../foundation/error.ts';
import { notAuthenticated, tenantFor, type Principal } from '../platform/modules/principal.ts';

/** `own`: reading, acknowledging and preferences of an inbox. */
export type NotifyDeed = 'publish' | 'read' | 'own';

export interface Asker {
  readonly tenant: string;
  /** For `acknowledgedBy`, and for the record. */
  readonly name: string;
}

export function mayNotify(
  principal: Principal | undefined,
  asked: {
    readonly deed: NotifyDeed;
    /** Of the request: `X-Tenant-Id`. */
    readonly tenant: string | undefined;
    /** Whose inbox; absent: broadcasts. */
    readonly customerId?: string;
  },
): Asker {
  if (principal === undefined) throw notAuthenticated('a bearer token is needed');
  const { deed, customerId } = asked;
  const { scopes, name } = principal;
  const has = (scope: 'append' | 'read'): boolean =>
    scopes.includes(scope) || scopes.includes('admin');
  // Who has no tenant is no customer of any.
  const isPerson =
    (principal.kind === 'jwt' || scopes.includes('use')) && principal.tenant !== undefined;
  const isOwn = isPerson && customerId === name && deed !== 'publish';
  // Everybody is told what was told to everybody.
  const isPublic = customerId === undefined && deed === 'read';
  const isAllowed = isOwn || isPublic || has(deed === 'read' ? 'read' : 'append');
  const tenant = tenantFor(principal, asked.tenant);
  if (isAllowed) return { tenant, name };
  throw new MillraceError(
    'NOT_ALLOWED',
    `this needs the scope '${deed === 'read' ? 'read' : 'append'}', or to be the customer`,
    { details: { scope: deed === 'read' ? 'read' : 'append' } },
  );
}
