// From whoever asks to a user: the first request of a principal registers it.

import type { Principal, WebContext } from 'millrace/platform';
import { ensureUser, userIdOf } from '../ensure-user.ts';
import { forbidden } from './collab-errors.ts';

export interface WebUser {
  /** Of the credentials, never of the request. */
  readonly tenant: string;
  readonly userId: string;
  readonly username: string;
}

export interface WebUsers {
  of(principal: Principal | undefined): Promise<WebUser>;
}

/** Whoever has not asked for a while is looked up again. */
const knownMax = 10_000;

export function createWebUsers({ handle, load }: Pick<WebContext, 'handle' | 'load'>): WebUsers {
  const known = new Map<string, Promise<WebUser>>();
  return {
    async of(principal) {
      const { tenant, userId } = identify(principal);
      const { name, username, email } = principal as Principal;
      // An address that changed has to be told, too.
      const key = JSON.stringify([tenant, userId, username, email]);
      const found = known.get(key);
      if (found !== undefined) return found;
      const user = ensureUser(
        { send: handle, load },
        { tenant, principal: name, username, email },
      ).then((ensured) => ({ tenant, ...ensured }));
      known.set(key, user);
      const [oldest] = known.keys();
      if (known.size > knownMax && oldest !== undefined) known.delete(oldest);
      try {
        return await user;
      } catch (error) {
        known.delete(key);
        throw error;
      }
    },
  };
}

/** Without asking anybody. */
export function identify(principal: Principal | undefined): Omit<WebUser, 'username'> {
  const { tenant, name = '', scopes = [] } = principal ?? {};
  if (tenant === undefined) throw forbidden('this needs credentials of one tenant');
  // What may only read is a machine that looks on, and nobody who speaks.
  if (scopes.length > 0 && scopes.every((scope) => scope === 'read')) {
    throw forbidden("this needs the scope 'use'");
  }
  return { tenant, userId: userIdOf(name) };
}
