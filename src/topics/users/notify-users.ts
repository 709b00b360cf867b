// Authenticates users of topics: passwords and tokens of topic users, and tokens of the platform.

import { createHash } from 'node:crypto';
import { MillraceError } from '../../foundation/error.ts';
import type { NotifyUser } from './access-rules.ts';
import { ntfyError } from '../ntfy-problems.ts';
import { matchesPasswordHash, isPasswordHash } from './notify-password.ts';
import type { UserBook } from './user-directory.ts';

export interface NotifyUserSettings {
  readonly name: string;
  /** Made by `hashNotifyPassword`. */
  readonly passwordHash: string;
  /** Admins may do everything. Default: user. */
  readonly role?: 'admin' | 'user' | undefined;
}

export interface NotifyTokenSettings {
  /** `tk_` and 29 letters, digits, `-` or `_`. */
  readonly token: string;
  readonly user: string;
  readonly label?: string | undefined;
}

/** The user of a platform token; undefined: unknown or revoked. */
export type VerifyForeignToken = (secret: string) => NotifyUser | undefined;

export interface NotifyUsers {
  /** Undefined: no credentials. Throws if the credentials are wrong. */
  authenticate(authorization: string | undefined): Promise<NotifyUser | undefined>;
  /** There are no users. */
  readonly isOpen: boolean;
  /** Whether the user still exists. */
  isKnown(user: NotifyUser): boolean;
}

const rememberedMax = 1_000;

export function createNotifyUsers(options: {
  readonly directory: UserBook;
  readonly tokens?: readonly NotifyTokenSettings[] | undefined;
  readonly verifyForeign?: VerifyForeignToken | undefined;
}): NotifyUsers {
  const { directory, tokens = [], verifyForeign } = options;
  const byToken = new Map(tokens.map(({ token, user }) => [digest(token), user]));
  checkTokens(tokens, directory);
  /** Caches verified passwords, because deriving the key is the slowest part of a request. */
  const verified = new Map<string, string>();

  function known(name: string): NotifyUser {
    const found = directory.find(name);
    if (found === undefined) throw ntfyError('unauthorized');
    return { name, role: found.role };
  }

  function byBearer(secret: string): NotifyUser {
    const name = byToken.get(digest(secret));
    if (name !== undefined) return known(name);
    const foreign = verifyForeign?.(secret);
    if (foreign === undefined) throw ntfyError('unauthorized');
    return foreign;
  }

  async function byPassword(name: string, password: string): Promise<NotifyUser> {
    const found = directory.find(name);
    const key = digest(`${name}\0${password}`);
    if (found !== undefined && verified.get(key) === found.passwordHash) return known(name);
    // Unknown names take as long, so that the response time does not reveal which names exist.
    const hash = found?.passwordHash ?? unknownHash;
    const matches = await matchesPasswordHash(password, hash);
    if (found === undefined || !matches) throw ntfyError('unauthorized');
    if (verified.size >= rememberedMax) verified.clear();
    verified.set(key, hash);
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
      const [, scheme = '', rest = ''] =
        /^(basic|bearer) +(.*)$/is.exec(authorization.trim()) ?? [];
      // Other schemes, such as WebPush, carry no credentials of ours.
      if (scheme === '') return undefined;
      if (scheme.toLowerCase() === 'bearer') return byBearer(rest.trim());
      const pair = Buffer.from(rest, 'base64').toString('utf8');
      const at = pair.indexOf(':');
      if (at === -1) throw ntfyError('unauthorized');
      const [name, password] = [pair.slice(0, at), pair.slice(at + 1)];
      return name === '' ? byBearer(password) : byPassword(name, password);
    },
  };
}

const unknownHash = `scrypt$${'A'.repeat(22)}$${'A'.repeat(43)}`;

function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

export function isUserName(text: string): boolean {
  return /^[-_.+@a-zA-Z0-9]{1,64}$/.test(text);
}

export function checkUsers(users: readonly NotifyUserSettings[]): void {
  for (const { name, passwordHash } of users) {
    if (!isUserName(name)) throw wrong('users', `'${name}' is not a valid user name`);
    if (!isPasswordHash(passwordHash)) {
      throw wrong('users', `the password of '${name}' is not hashed: use hashNotifyPassword`);
    }
  }
}

function checkTokens(tokens: readonly NotifyTokenSettings[], directory: UserBook): void {
  for (const { token, user } of tokens) {
    if (!/^tk_[-_A-Za-z0-9]{29}$/.test(token))
      throw wrong('tokens', 'a token is tk_ and 29 letters, digits, - or _');
    if (directory.find(user) === undefined) throw wrong('tokens', `unknown user '${user}'`);
  }
}

function wrong(field: string, message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `notify.${field}: ${message}`, { details: { field } });
}
