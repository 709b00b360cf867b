// Who a request is from: users and tokens of the configuration, and tokens of the platform.

import { createHash } from 'node:crypto';
import { MillraceError } from '../foundation/error.ts';
import type { NotifyUser } from './access-rules.ts';
import { refused } from './ntfy-problems.ts';
import { fitsPasswordHash, isPasswordHash } from './notify-password.ts';
import type { UserBook } from './user-directory.ts';

export interface NotifyUserSettings {
  readonly name: string;
  /** By `hashNotifyPassword`. */
  readonly passwordHash: string;
  /** Admins may do everything. Default: user. */
  readonly role?: 'admin' | 'user';
}

export interface NotifyTokenSettings {
  /** `tk_` and 29 letters, digits, `-` or `_`. */
  readonly token: string;
  readonly user: string;
  readonly label?: string;
}

/** Who a secret of somebody else's stands for; undefined: it is not known there. */
export type VerifyForeignToken = (secret: string) => NotifyUser | undefined;

export interface NotifyUsers {
  /** Undefined: nobody said who they are. Throws for credentials that are not good. */
  authenticate(authorization: string | undefined): Promise<NotifyUser | undefined>;
  /** Nobody is known, and so nobody can be asked who they are. */
  readonly isOpen: boolean;
  /** Whether this is still somebody: users may be removed. */
  isKnown(user: NotifyUser): boolean;
}

const rememberedMax = 1_000;

export function createNotifyUsers(options: {
  readonly directory: UserBook;
  readonly tokens?: readonly NotifyTokenSettings[];
  readonly verifyForeign?: VerifyForeignToken;
}): NotifyUsers {
  const { directory, tokens = [], verifyForeign } = options;
  const byToken = new Map(tokens.map(({ token, user }) => [digest(token), user]));
  checkTokens(tokens, directory);
  /** Passwords that fitted: deriving a key for each request would take more than all the rest. */
  const fitted = new Map<string, string>();

  function known(name: string): NotifyUser {
    const found = directory.find(name);
    if (found === undefined) throw refused('unauthorized');
    return { name, role: found.role };
  }

  function byBearer(secret: string): NotifyUser {
    const name = byToken.get(digest(secret));
    if (name !== undefined) return known(name);
    const foreign = verifyForeign?.(secret);
    if (foreign === undefined) throw refused('unauthorized');
    return foreign;
  }

  async function byPassword(name: string, password: string): Promise<NotifyUser> {
    const found = directory.find(name);
    const key = digest(`${name}\0${password}`);
    if (found !== undefined && fitted.get(key) === found.passwordHash) return known(name);
    // Also for names that nobody has: how long it takes would tell which there are.
    const hash = found?.passwordHash ?? unknownHash;
    const fits = await fitsPasswordHash(password, hash);
    if (found === undefined || !fits) throw refused('unauthorized');
    if (fitted.size >= rememberedMax) fitted.clear();
    fitted.set(key, hash);
    return known(name);
  }

  return {
    get isOpen() {
      return directory.users.length === 0;
    },
    isKnown: ({ name, permission }) =>
      permission !== undefined || directory.find(name) !== undefined,
    async authenticate(authorization) {
      if (authorization === undefined) return undefined;
      const [, scheme = '', rest = ''] = /^(basic|bearer) +(.*)$/i.exec(authorization.trim()) ?? [];
      // Other schemes, such as WebPush's, are nobody's credentials here.
      if (scheme === '') return undefined;
      if (scheme.toLowerCase() === 'bearer') return byBearer(rest.trim());
      const pair = Buffer.from(rest, 'base64').toString('utf8');
      const at = pair.indexOf(':');
      if (at === -1) throw refused('unauthorized');
      const [name, password] = [pair.slice(0, at), pair.slice(at + 1)];
      return name === '' ? byBearer(password) : byPassword(name, password);
    },
  };
}

const unknownHash = `scrypt$${'A'.repeat(22)}$${'A'.repeat(43)}`;

function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

export function checkUsers(users: readonly NotifyUserSettings[]): void {
  for (const { name, passwordHash } of users) {
    if (!/^[-_.+@a-zA-Z0-9]{1,64}$/.test(name)) throw wrong('users', `'${name}' is no user name`);
    if (!isPasswordHash(passwordHash)) {
      throw wrong('users', `the password of '${name}' is not hashed: use hashNotifyPassword`);
    }
  }
}

function checkTokens(tokens: readonly NotifyTokenSettings[], directory: UserBook): void {
  for (const { token, user } of tokens) {
    if (!/^tk_[-_A-Za-z0-9]{29}$/.test(token))
      throw wrong('tokens', 'a token is tk_ and 29 letters');
    if (directory.find(user) === undefined) throw wrong('tokens', `there is no user '${user}'`);
  }
}

function wrong(field: string, message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `notify.${field}: ${message}`, { details: { field } });
}
