// Sessions of the console and the one-time links that open them. Both are tokens of a separate kind: every process
// knows them, and they end with the token that they were created from.

import type { Clock } from '../../foundation/clock.ts';
import type { IdSource } from '../../foundation/ids.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { SystemStream } from '../../store/system-stream.ts';
import {
  tokenCreatedType,
  tokenRevokedType,
  type TokenBook,
  type TokenCreated,
  type TokenRevoked,
} from './token-book.ts';
import {
  createTokenSecret,
  fitsTokenHash,
  hashTokenSecret,
  tokenIdOf,
  tokenState,
  tokenUnknown,
  type SessionActor,
  type Token,
  type VerifiedToken,
} from './token.ts';

export const sessionLimits = {
  /** A session ends after this time, or with the credentials that it was created from. */
  sessionMsMax: 12 * 3_600_000,
  linkMs: 600_000,
} as const;

/** The credentials that a session is created from: an API key, or a person of an identity provider. */
export type SessionSource =
  | { readonly token: Token }
  | (Pick<Token, 'scopes' | 'tenant'> & {
      readonly actor: SessionActor;
      readonly expiresAtMs: number | undefined;
    });

interface OpenedSession {
  readonly session: Token;
  /** The secret is not stored. */
  readonly secret: string;
  readonly expiresAt: string;
}

export interface Sessions {
  /** Creates a code that opens one session of an API key within ten minutes. Only its hash is stored. */
  createLink(
    nameOrId: string,
    options?: { readonly by?: string },
  ): Promise<{ readonly code: string; readonly expiresAt: string }>;
  /** Ends the link, and returns the API key that it was created from. Rejects with `NOT_AUTHENTICATED`. */
  useLink(code: string): Promise<Token>;
  openSession(source: SessionSource): Promise<OpenedSession>;
  /** Undefined: the secret is rejected. Only sessions are accepted. */
  verifySession(secret: string): VerifiedToken | undefined;
  endSession(secret: string): Promise<void>;
}

export function createSessions({
  book,
  records,
  clock,
  ids,
  endedOf,
}: {
  readonly book: TokenBook;
  readonly records: Pick<SystemStream, 'catchUp' | 'write'>;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly endedOf: (token: Token) => AbortSignal;
}): Sessions {
  const find = (secret: string, kind: 'link' | 'session'): Token | undefined => {
    const found = book.get(tokenIdOf(secret) ?? '');
    if (found?.token.kind !== kind || !fitsTokenHash(secret, found.hash)) return undefined;
    return tokenState(found.token, clock.now()) === 'live' ? found.token : undefined;
  };

  const add = async (
    kind: 'link' | 'session',
    fields: () => Omit<TokenCreated, 'hash' | 'id' | 'kind' | 'name'>,
  ): Promise<{ readonly id: string; readonly secret: string }> => {
    const id = ids.next();
    const secret = createTokenSecret(id);
    await records.write<TokenCreated>(() => {
      const wanted = fields();
      book.checkSessionRoom(clock.now());
      const hash = hashTokenSecret(secret);
      return {
        type: tokenCreatedType,
        payload: { id, name: `${kind}-${id}`, hash, kind, ...wanted },
      };
    });
    return { id, secret };
  };

  const end = (id: string): Promise<TokenRevoked> =>
    records.write<TokenRevoked>(() => {
      if (book.find(id) === undefined) throw linkInvalid();
      return { type: tokenRevokedType, payload: { id } };
    });

  const parentOf = (nameOrId: string): Token => {
    const found = book.find(nameOrId);
    const isKey = found !== undefined && found.kind === undefined;
    if (isKey && tokenState(found, clock.now()) === 'live') return found;
    throw tokenUnknown(nameOrId);
  };

  return {
    async createLink(nameOrId, { by } = {}) {
      const expiresAt = new Date(clock.now() + sessionLimits.linkMs).toISOString();
      const { secret } = await add('link', () => {
        const { id: parent, scopes, tenant } = parentOf(nameOrId);
        return {
          scopes,
          parent,
          expiresAt,
          ...(tenant === undefined ? {} : { tenant }),
          ...(by === undefined ? {} : { by }),
        };
      });
      return { code: secret, expiresAt };
    },
    async useLink(code) {
      // Another process may have created the link a moment ago.
      await records.catchUp();
      const link = find(code, 'link');
      if (link === undefined) throw linkInvalid();
      // Of several concurrent uses only one writes the end of the link.
      await end(link.id);
      return parentOf(link.parent ?? '');
    },
    async openSession(source) {
      const lastMs = clock.now() + sessionLimits.sessionMsMax;
      const ends = (limitMs: number | undefined): string =>
        new Date(Math.min(lastMs, limitMs ?? lastMs)).toISOString();
      const { id, secret } = await add('session', () => {
        if (!('token' in source)) {
          const { scopes, tenant, actor, expiresAtMs } = source;
          const expiresAt = ends(expiresAtMs);
          return { scopes, actor, expiresAt, ...(tenant === undefined ? {} : { tenant }) };
        }
        const parent = parentOf(source.token.id);
        const { name, scopes, tenant, expiresAt } = parent;
        return {
          scopes,
          parent: parent.id,
          actor: { kind: 'token', name },
          expiresAt: ends(expiresAt === undefined ? undefined : Date.parse(expiresAt)),
          ...(tenant === undefined ? {} : { tenant }),
        };
      });
      const session = book.get(id)?.token;
      if (session?.expiresAt === undefined) throw linkInvalid();
      return { session, secret, expiresAt: session.expiresAt };
    },
    verifySession(secret) {
      const token = find(secret, 'session');
      return token === undefined ? undefined : { token, ended: endedOf(token) };
    },
    async endSession(secret) {
      const session = find(secret, 'session');
      if (session !== undefined) await end(session.id);
    },
  };
}

function linkInvalid(): MillraceError {
  return new MillraceError('NOT_AUTHENTICATED', 'the link is unknown, was used or has expired');
}
