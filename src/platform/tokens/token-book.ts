// All tokens, as the events of their stream tell them. Pure: it holds and decides, and does no work.

import { MillraceError } from '../../foundation/error.ts';
import { createTenantDirectory, type TenantLookup } from '../../contracts/tenant.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { tokenInvalid, tokenLimits, type NewToken, type Token } from './token.ts';

/** Of the system: its types begin with `$`, so that no reader meets them by accident. */
export const tokensStream = '$millrace-tokens';
export const tokenCreatedType = '$token-created';
export const tokenRevokedType = '$token-revoked';

export interface TokenCreated {
  readonly id: string;
  readonly name: string;
  readonly hash: string;
  readonly scopes: Token['scopes'];
  readonly tenant?: string;
  readonly expiresAt?: string;
  readonly by?: string;
}

export interface TokenRevoked {
  readonly id: string;
  readonly by?: string;
}

interface KnownToken {
  readonly token: Token;
  /** Of its secret. */
  readonly hash: string;
}

export interface TokenBook {
  /** Of the last event that was taken in; −1: none. */
  readonly revision: number;
  /** Of all tokens that ever were, so that a tenant's streams do not change hands later. */
  readonly tenants: TenantLookup;
  /** Takes an event in, unless that was done before. Returns the token that it revoked. */
  apply(event: RecordedEvent): Token | undefined;
  get(id: string): KnownToken | undefined;
  /** By name or id, among those that were not revoked. */
  find(nameOrId: string): Token | undefined;
  list(): readonly Token[];
  /** Throws if there is no room for it beside the others. */
  checkRoom(wanted: NewToken): void;
}

export function createTokenBook(): TokenBook {
  const byId = new Map<string, KnownToken>();
  const idByName = new Map<string, string>();
  const tenants = createTenantDirectory();
  let revision = -1;

  const find = (nameOrId: string): Token | undefined => {
    const token = byId.get(idByName.get(nameOrId) ?? nameOrId)?.token;
    return token?.revokedAt === undefined ? token : undefined;
  };
  const create = (payload: TokenCreated, at: string): void => {
    const { hash, by, ...rest } = payload;
    const token = { ...rest, createdAt: at, ...(by === undefined ? {} : { createdBy: by }) };
    byId.set(token.id, { token, hash });
    idByName.set(token.name, token.id);
    if (token.tenant !== undefined) tenants.add(token.tenant);
  };
  const revoke = ({ id, by }: TokenRevoked, at: string): Token | undefined => {
    const known = byId.get(id);
    if (known === undefined || known.token.revokedAt !== undefined) return undefined;
    const token = {
      ...known.token,
      revokedAt: at,
      ...(by === undefined ? {} : { revokedBy: by }),
    };
    byId.set(id, { ...known, token });
    idByName.delete(token.name);
    return token;
  };

  return {
    get revision() {
      return revision;
    },
    tenants,
    apply(event) {
      if (event.revision <= revision) return undefined;
      const { type, payload, occurredAt } = event;
      let revoked: Token | undefined;
      if (type === tokenCreatedType && isCreated(payload)) create(payload, occurredAt);
      else if (type === tokenRevokedType && isRevoked(payload))
        revoked = revoke(payload, occurredAt);
      // Passing over a revocation that cannot be read would let its token in.
      else throw unreadable(event);
      revision = event.revision;
      return revoked;
    },
    get: (id) => byId.get(id),
    find,
    list: () => [...byId.values()].map(({ token }) => token),
    checkRoom({ name, tenant }) {
      if (idByName.has(name)) {
        throw new MillraceError('TOKEN_EXISTS', `there is a token named '${name}'`, {
          details: { name },
        });
      }
      if (idByName.size >= tokenLimits.tokensMax) {
        throw tokenInvalid('name', `there are ${tokenLimits.tokensMax} tokens already`);
      }
      // Of two tenants one may not begin the other: some streams would belong to both.
      if (tenant !== undefined) createTenantDirectory([...tenants, tenant]);
    },
  };
}

function isCreated(payload: unknown): payload is TokenCreated {
  const { id, name, hash, scopes } = (payload ?? {}) as Partial<TokenCreated>;
  return [id, name, hash].every((each) => typeof each === 'string') && Array.isArray(scopes);
}

function isRevoked(payload: unknown): payload is TokenRevoked {
  return typeof ((payload ?? {}) as Partial<TokenRevoked>).id === 'string';
}

function unreadable({ stream, revision, type }: RecordedEvent): MillraceError {
  return new MillraceError('STORE_CORRUPT', `revision ${revision} of '${stream}' is no token's`, {
    details: { stream, revision, type },
  });
}
