// The tokens of a store, as events of a system stream: a revocation reaches all processes that follow it.

import { systemClock, type Clock } from '../../foundation/clock.ts';
import { createIds } from '../../foundation/ids.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { TenantLookup } from '../../contracts/tenant.ts';
import type { EventStore } from '../../store/event-store.ts';
import { followSystemStream } from '../../store/system-stream.ts';
import {
  createTokenBook,
  tenantAddedType,
  tokenCreatedType,
  tokenRevokedType,
  tokensStream,
  type TenantAdded,
  type TokenCreated,
  type TokenRevoked,
} from './token-book.ts';
import { createSessions, type Sessions } from './sessions.ts';
import {
  checkNewToken,
  createTokenSecret,
  fitsTokenHash,
  hashTokenSecret,
  tokenIdOf,
  tokenState,
  tokenUnknown,
  type NewToken,
  type Token,
  type VerifiedToken,
} from './token.ts';

export interface TokensOptions {
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

export interface CreatedToken {
  readonly token: Token;
  /** The secret is not stored: if it is lost, create a new token. */
  readonly secret: string;
}

export interface Tokens extends AsyncDisposable, Sessions {
  /** The directory of tenants, needed to parse tenants with a hyphen in stream names. */
  readonly tenants: TenantLookup;
  /** Adds a tenant that has no token. Rejects with `TENANT_OVERLAP`. */
  addTenant(tenant: string): Promise<void>;
  create(wanted: NewToken): Promise<CreatedToken>;
  /** Revokes a token by its name or id. */
  revoke(nameOrId: string, options?: { readonly by?: string }): Promise<Token>;
  /** Lists all API keys, oldest first, including revoked ones. */
  list(): Promise<readonly Token[]>;
  /** Undefined: the secret is rejected. If a name is given, it must be the token's name or id. */
  verify(secret: string, name?: string): VerifiedToken | undefined;
}

/** The longest delay that a JavaScript timer supports. */
const sleepMsMax = 0x7fff_ffff;

/**
 * Opens the tokens of a store, and follows their stream: tokens that another process creates or revokes are known
 * within moments. The caller closes the store.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { openTokens } from 'millrace/platform';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * await using tokens = await openTokens(db.store);
 * const { token, secret } = await tokens.create({ name: 'shop', tenant: 'core', scopes: ['append'] });
 * console.log(tokens.verify(secret)?.token.tenant); // core
 * await tokens.revoke(token.name);
 */
export async function openTokens(store: EventStore, options: TokensOptions = {}): Promise<Tokens> {
  const { clock = systemClock, observer = silentObserver } = options;
  const ids = createIds({ clock });
  const book = createTokenBook();
  const stopping = new AbortController();
  const { signal } = stopping;
  const revocations = new Map<string, AbortController>();
  const adding = new Map<string, Promise<TenantAdded>>();

  const end = (id: string): void => {
    revocations.get(id)?.abort();
    revocations.delete(id);
  };
  const records = await followSystemStream(store, {
    stream: tokensStream,
    clock,
    observer,
    apply(event) {
      for (const { id } of book.apply(event)) end(id);
    },
    onLost() {
      book.clear();
      for (const id of revocations.keys()) end(id);
    },
  });

  const endAt = async (id: string, expiresAt: string): Promise<void> => {
    for (;;) {
      const leftMs = Date.parse(expiresAt) - clock.now();
      if (signal.aborted) return;
      if (leftMs <= 0) return end(id);
      await clock.sleep(Math.min(leftMs, sleepMsMax), signal).catch(() => undefined);
    }
  };
  const endedOf = ({ id, expiresAt }: Token): AbortSignal => {
    let ending = revocations.get(id);
    if (ending === undefined) {
      ending = new AbortController();
      revocations.set(id, ending);
      if (expiresAt !== undefined) void endAt(id, expiresAt);
    }
    return ending.signal;
  };

  return {
    ...createSessions({ book, records, clock, ids, endedOf }),
    tenants: book.tenants,
    async addTenant(tenant) {
      if (book.tenants.has(tenant)) return;
      const add = (): Promise<TenantAdded> =>
        records.write(() => {
          book.checkTenant(tenant);
          return { type: tenantAddedType, payload: { tenant } };
        });
      // The first requests of a tenant often come together.
      const running = adding.get(tenant) ?? add().finally(() => adding.delete(tenant));
      adding.set(tenant, running);
      await running;
    },
    async create(wanted) {
      checkNewToken(wanted, clock.now());
      const id = ids.next();
      const secret = createTokenSecret(id);
      const { name, tenant, expiresAt, by } = wanted;
      const payload: TokenCreated = {
        id,
        name,
        hash: hashTokenSecret(secret),
        scopes: [...new Set(wanted.scopes)],
        ...(tenant === undefined ? {} : { tenant }),
        ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
        ...(by === undefined ? {} : { by }),
      };
      await records.write(() => {
        book.checkRoom(wanted);
        return { type: tokenCreatedType, payload };
      });
      return { token: known(id), secret };
    },
    async revoke(nameOrId, { by } = {}) {
      const { id } = await records.write<TokenRevoked>(() => {
        const found = book.find(nameOrId);
        if (found === undefined) throw tokenUnknown(nameOrId);
        return {
          type: tokenRevokedType,
          payload: { id: found.id, ...(by === undefined ? {} : { by }) },
        };
      });
      return known(id);
    },
    async list() {
      await records.catchUp();
      return book.list();
    },
    verify(secret, name) {
      const found = book.get(tokenIdOf(secret) ?? '');
      if (found === undefined || !fitsTokenHash(secret, found.hash)) return undefined;
      const { token } = found;
      const named = name === undefined || name === token.name || name === token.id;
      if (token.kind !== undefined || !named || tokenState(token, clock.now()) !== 'live')
        return undefined;
      return { token, ended: endedOf(token) };
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await records[Symbol.asyncDispose]();
    },
  };

  function known(id: string): Token {
    const found = book.get(id)?.token;
    if (found === undefined) throw tokenUnknown(id);
    return found;
  }
}
