// From whoever is signed in to a user: its id, its name that nobody else has, and the seal on what is personal.

import type { NewCommand } from 'millrace/contracts';
import { hasCode, idFromKey, MillraceError } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { subjectHeader } from 'millrace/store';
import { botId, username } from './fields.ts';
import { user } from './user.ts';
import { changeProfile, claimUsername, registerUser } from './user-events.ts';

export interface SignedIn {
  readonly tenant: string;
  /** Of the principal: stays the same when its credentials are renewed. */
  readonly principal: string;
  /** What others shall call this user, if it is free. Default: the principal's name. */
  readonly username?: string | undefined;
  readonly email?: string | undefined;
  readonly displayName?: string | undefined;
}

/** So many others may be called the same. */
const namesMax = 100;
/** Room for a number behind it. */
const nameCharsMax = 60;

/** The principal's own name where it is an id, and no address and no number of a person. */
export function userIdOf(principal: string): string {
  const isId = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/.test(principal) && principal !== botId;
  return isId ? principal : idFromKey(`collab user ${principal}`);
}

/** Whose personal data the events of a user hold: `millrace forget <subject>`. */
export function userSubject(tenant: string, userId: string): string {
  return `collab:user:${tenant}:${userId}`;
}

/** Done again it changes nothing, wherever it was broken off. Gives the name that the user has. */
export async function ensureUser(
  { send, load }: Pick<ModuleContext, 'load' | 'send'>,
  { tenant, principal, username: wanted, email, displayName }: SignedIn,
): Promise<{ readonly userId: string; readonly username: string }> {
  const userId = userIdOf(principal);
  const ask = (id: string, command: NewCommand): Promise<unknown> =>
    send({
      tenant,
      id,
      command,
      headers: { [subjectHeader]: userSubject(tenant, userId) },
      user: { id: userId },
    });
  const profile = {
    ...(email === undefined ? {} : { email }),
    ...(displayName === undefined ? {} : { displayName }),
  };
  const { state } = await load(user, { tenant, id: userId });
  if (state.username !== undefined) {
    const { email: kept, displayName: shown } = state;
    const isNews = email !== undefined && email !== kept;
    if (isNews) await ask(userId, changeProfile({ displayName: shown, ...profile }));
    return { userId, username: state.username };
  }
  for (const name of namesFrom(wanted ?? principal, userId)) {
    try {
      await ask(name.toLowerCase(), claimUsername({ userId }));
    } catch (error) {
      if (hasCode(error, 'COMMAND_REFUSED')) continue;
      throw error;
    }
    await ask(userId, registerUser({ username: name, ...profile }));
    return { userId, username: name };
  }
  throw new MillraceError('COMMAND_REFUSED', 'too many users have that name: choose another one', {
    details: { reason: 'username-taken' },
  });
}

/** `Zoë K.` → `Zo-K.`, then `Zo-K.-2`, … */
function* namesFrom(wanted: string, userId: string): Generator<string> {
  const cut = wanted
    .replace(/@.*$/s, '')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, nameCharsMax);
  const first = username.safeParse(cut).success ? cut : `user-${userId}`.slice(0, nameCharsMax);
  yield first;
  for (let count = 2; count <= namesMax; count += 1) yield `${first}-${count}`;
}
