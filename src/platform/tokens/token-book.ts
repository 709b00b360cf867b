// All tokens, from the events of their stream. A pure state with decisions.

import { MillraceError } from '../../foundation/error.ts';
import { createTenantDirectory, type TenantLookup } from '../../contracts/tenant.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { tokenInvalid, tokenLimits, tokenState, type NewToken, type Token } from './token.ts';

/** System events: their types start with `$`, so that readers do not get them by accident. */
export const tokensStream = '$millrace-tokens';
export const tokenCreatedType = '$token-created';
export const tokenRevokedType = '$token-revoked';
export const tenantAddedType = '$tenant-added';

export interface TokenCreated extends Omit<
  Token,
  'createdAt' | 'createdBy' | 'revokedAt' | 'revokedBy'
> {
  readonly hash: string;
  readonly by?: string;
}

export interface TokenRevoked {
  readonly id: string;
  readonly by?: string;
}

export interface TenantAdded {
  readonly tenant: string;
}

interface KnownToken {
  readonly token: Token;
  readonly hash: string;
}

export interface TokenBook {
  /** Added tenants and those of all tokens, including revoked ones: the streams of a tenant never change their owner. */
  readonly tenants: TenantLookup;
  /** Returns the token that the event revoked, and its links and sessions. */
  apply(event: RecordedEvent): readonly Token[];
  /** Forgets all tokens, but not their tenants. */
  clear(): void;
  get(id: string): KnownToken | undefined;
  /** Finds an active token by its name or id; a link or session by its id. */
  find(nameOrId: string): Token | undefined;
  /** All API keys, oldest first; no links and sessions. */
  list(): readonly Token[];
  /** Throws if the new token conflicts with existing ones. */
  checkRoom(wanted: NewToken): void;
  /** Drops links and sessions that have ended, and throws if too many are left. */
  checkSessionRoom(nowMs: number): void;
  /** Throws `TENANT_OVERLAP` if some stream names would belong to this tenant and a known one. */
  checkTenant(tenant: string): void;
}

export function createTokenBook(): TokenBook {
  const byId = new Map<string, KnownToken>();
  const idByName = new Map<string, string>();
  const tenants = createTenantDirectory();

  const find = (nameOrId: string): Token | undefined => {
    const token = byId.get(idByName.get(nameOrId) ?? nameOrId)?.token;
    return token?.revokedAt === undefined ? token : undefined;
  };
  const checkTenant = (tenant: string): void => void createTenantDirectory([...tenants, tenant]);
  const create = (payload: TokenCreated, at: string): void => {
    const { hash, by, ...rest } = payload;
    const token = { ...rest, createdAt: at, ...(by === undefined ? {} : { createdBy: by }) };
    byId.set(token.id, { token, hash });
    if (token.kind === undefined) idByName.set(token.name, token.id);
    if (token.tenant !== undefined) tenants.add(token.tenant);
  };
  const revoke = ({ id, by }: TokenRevoked, at: string): readonly Token[] => {
    const known = byId.get(id);
    if (known === undefined || known.token.revokedAt !== undefined) return [];
    const token = {
      ...known.token,
      revokedAt: at,
      ...(by === undefined ? {} : { revokedBy: by }),
    };
    byId.set(id, { ...known, token });
    if (token.kind !== undefined) return [token];
    idByName.delete(token.name);
    const children = [...byId.values()].filter((each) => each.token.parent === id);
    return [
      token,
      ...children.flatMap((each) =>
        revoke({ id: each.token.id, ...(by === undefined ? {} : { by }) }, at),
      ),
    ];
  };

  return {
    tenants,
    apply(event) {
      const { type, payload, occurredAt } = event;
      if (type === tokenRevokedType && hasTexts<TokenRevoked>(payload, 'id')) {
        return revoke(payload, occurredAt);
      }
      if (type === tenantAddedType && hasTexts<TenantAdded>(payload, 'tenant')) {
        tenants.add(payload.tenant);
        return [];
      }
      // Ignoring an unreadable revocation would accept its token.
      const isCreated = hasTexts<TokenCreated>(payload, 'id', 'name', 'hash');
      if (type !== tokenCreatedType || !isCreated || !Array.isArray(payload.scopes)) {
        throw unreadable(event);
      }
      create(payload, occurredAt);
      return [];
    },
    clear() {
      byId.clear();
      idByName.clear();
    },
    get: (id) => byId.get(id),
    find,
    list: () =>
      [...byId.values()].flatMap(({ token }) => (token.kind === undefined ? [token] : [])),
    checkRoom({ name, tenant }) {
      if (idByName.has(name)) {
        throw new MillraceError('TOKEN_EXISTS', `a token named '${name}' exists`, {
          details: { name },
        });
      }
      if (idByName.size >= tokenLimits.tokensMax) {
        throw tokenInvalid('name', `the limit of ${tokenLimits.tokensMax} tokens is reached`);
      }
      if (tenant !== undefined) checkTenant(tenant);
    },
    checkSessionRoom(nowMs) {
      let live = 0;
      for (const [id, { token }] of byId) {
        if (token.kind === undefined) continue;
        if (tokenState(token, nowMs) === 'live') live += 1;
        else byId.delete(id);
      }
      if (live < tokenLimits.tokensMax) return;
      throw tokenInvalid('session', `the limit of ${tokenLimits.tokensMax} sessions is reached`);
    },
    checkTenant,
  };
}

function hasTexts<Payload>(
  payload: unknown,
  ...fields: readonly (keyof Payload)[]
): payload is Payload {
  const given = (payload ?? {}) as Payload;
  return fields.every((field) => typeof given[field] === 'string');
}

function unreadable({ stream, revision, type }: RecordedEvent): MillraceError {
  return new MillraceError(
    'STORE_CORRUPT',
    `revision ${revision} of '${stream}' is not a token event`,
    {
      details: { stream, revision, type },
    },
  );
}
