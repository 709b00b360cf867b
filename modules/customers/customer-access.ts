// Authorization. A program needs a scope. A person (scope `use`, or a JWT) may use the inbox of the customer whose id
// equals the person's name.

import { MillraceError } from 'millrace/foundation';
import { personOf, tenantFor, type Principal } from 'millrace/platform';

/** `own`: acknowledges notifications, changes preferences and contact. */
export type NotifyAction = 'publish' | 'read' | 'own';

export interface Authorized {
  readonly tenant: string;
  /** The name of the principal. */
  readonly name: string;
}

export function authorize(
  principal: Principal | undefined,
  request: {
    readonly action: NotifyAction;
    /** The tenant of the header `X-Tenant-Id`. */
    readonly tenant: string | undefined;
    /** The customer of the request; absent for broadcasts. */
    readonly customerId?: string | undefined;
  },
): Authorized {
  if (principal === undefined) {
    throw new MillraceError('NOT_AUTHENTICATED', 'a bearer token is needed');
  }
  const { action, customerId } = request;
  const { scopes, name } = principal;
  const scope = action === 'read' ? 'read' : 'append';
  const isPerson =
    (principal.kind === 'jwt' || scopes.includes('use')) && principal.tenant !== undefined;
  const isOwn = isPerson && customerId === personOf(principal) && action !== 'publish';
  const isBroadcastRead = isPerson && customerId === undefined && action === 'read';
  const tenant = tenantFor(principal, request.tenant);
  const isAllowed = isOwn || isBroadcastRead || scopes.includes(scope) || scopes.includes('admin');
  if (isAllowed) return { tenant, name };
  throw new MillraceError(
    'NOT_ALLOWED',
    `this needs the scope '${scope}', or a token of the customer`,
    { details: { scope } },
  );
}
