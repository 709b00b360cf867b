// Users of a tenant: the aggregate, the unique user names, the read model, and registration at the first sign-in.

import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import type { NewCommand } from 'millrace/contracts';
import { hasCode, idFromKey, MillraceError } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { projection, readModel } from 'millrace/projections';
import { subjectHeader } from 'millrace/store';
import { botId, username as usernameSchema } from './fields.ts';
import { update, type Projected } from './projected.ts';
import {
  changePreferences,
  changeProfile,
  claimUsername,
  emailPreferenceDefault,
  registerUser,
  usernameClaimed,
  userPreferencesChanged,
  userProfileChanged,
  userRegistered,
  type EmailPreference,
} from './user-events.ts';

export interface UserState {
  /** Undefined: not registered, or forgotten. */
  readonly username: string | undefined;
  readonly email: string | undefined;
  readonly displayName: string | undefined;
  readonly emailPreference: EmailPreference;
}

const unregistered: UserState = {
  username: undefined,
  email: undefined,
  displayName: undefined,
  emailPreference: emailPreferenceDefault,
};

export const user = defineAggregate({
  bc: 'collab',
  name: 'user',
  version: 1,
  events: [userRegistered, userProfileChanged, userPreferencesChanged],
  commands: [registerUser, changeProfile, changePreferences],
  initial: unregistered,
  evolve: {
    'user.registered.v1': (state, { username, email, displayName }) => ({
      ...state,
      username,
      email,
      displayName,
    }),
    'user.profile-changed.v1': (state, { email, displayName }) => ({
      ...state,
      email,
      displayName,
    }),
    'user.preferences-changed.v1': (state, { email }) => ({ ...state, emailPreference: email }),
  },
  decide: {
    'user.register': (registration, { username }, { id }) => {
      if (id === botId)
        throw new CommandRejected(
          'user-reserved',
          `The user id "${botId}" is reserved for the bot.`,
        );
      if (username === undefined) return userRegistered(registration);
      if (username === registration.username) return [];
      throw new CommandRejected(
        'user-exists',
        `User ${id} is already registered under another name.`,
      );
    },
    'user.change-profile': (profile, state, { id }) => {
      assertRegistered(state, id);
      const isSame = profile.email === state.email && profile.displayName === state.displayName;
      return isSame ? [] : userProfileChanged(profile);
    },
    'user.change-preferences': (preferences, state, { id }) => {
      assertRegistered(state, id);
      return preferences.email === state.emailPreference ? [] : userPreferencesChanged(preferences);
    },
  },
});

export interface UsernameState {
  /** Undefined: the name is free. */
  readonly userId: string | undefined;
}

const free: UsernameState = { userId: undefined };

export const usernames = defineAggregate({
  bc: 'collab',
  name: 'username',
  version: 1,
  events: [usernameClaimed],
  commands: [claimUsername],
  initial: free,
  evolve: { 'username.claimed.v1': (_state, { userId }): UsernameState => ({ userId }) },
  decide: {
    'username.claim': ({ userId }, { userId: holder }, { id }) => {
      if (holder === undefined) return usernameClaimed({ userId });
      if (holder === userId) return [];
      throw new CommandRejected('username-taken', `The user name ${id} is taken.`);
    },
  },
});

function assertRegistered({ username }: UserState, id: string): void {
  if (username === undefined) throw new CommandRejected('user-unknown', `Unknown user '${id}'.`);
}

/** The public profile. The address is not part of it: senders of e-mail load the aggregate, so a forgotten user has none. */
export interface UserDocument {
  readonly userId: string;
  readonly username: string;
  readonly displayName?: string | undefined;
  readonly emailPreference: EmailPreference;
  readonly registeredAt: string;
}

export const userProjection = projection({
  name: 'sub:collab:user-projection:v1',
  readModel: readModel<UserDocument>({
    bc: 'collab',
    aggregate: 'user',
    version: 1,
    indexes: { username: ({ username }) => username.toLowerCase() },
  }),
  on: {
    'user.registered.v1': (
      _before,
      { payload, aggregate, occurredAt }: Projected<typeof userRegistered>,
    ) => ({
      userId: aggregate.id,
      username: payload.username,
      displayName: payload.displayName,
      emailPreference: emailPreferenceDefault,
      registeredAt: occurredAt,
    }),
    'user.profile-changed.v1': update<UserDocument, Projected<typeof userProfileChanged>>(
      (profile, { payload: { displayName } }) => ({ ...profile, displayName }),
    ),
    'user.preferences-changed.v1': update<UserDocument, Projected<typeof userPreferencesChanged>>(
      (profile, { payload: { email } }) => ({ ...profile, emailPreference: email }),
    ),
  },
  onForgotten: () => null,
});

export interface SignedIn {
  readonly tenant: string;
  /** Name of the principal: stable when its credentials are renewed. */
  readonly principal: string;
  /** Preferred user name. Default: the name of the principal. */
  readonly username?: string | undefined;
  readonly email?: string | undefined;
  readonly displayName?: string | undefined;
}

/** How many users may prefer the same name. */
const namesMax = 100;
/** Leaves room for a numeric suffix. */
const nameCharsMax = 60;

/** The principal's name if it is a valid id; else (addresses, numbers) a hash, to keep personal data out of ids. */
export function userIdOf(principal: string): string {
  const isId = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/.test(principal) && principal !== botId;
  return isId ? principal : idFromKey(`collab user ${principal}`);
}

/** The data subject of a user's events: `millrace forget <subject>`. */
export function userSubject(tenant: string, userId: string): string {
  return `collab:user:${tenant}:${userId}`;
}

/** Registers a user, or updates the address; idempotent. Returns the id and the name of the user. */
export async function ensureUser(
  { send, load }: Pick<ModuleContext, 'load' | 'send'>,
  { tenant, principal, username: preferred, email, displayName }: SignedIn,
): Promise<{ readonly userId: string; readonly username: string }> {
  const userId = userIdOf(principal);
  const sendSealed = (id: string, command: NewCommand): Promise<unknown> =>
    send({
      tenant,
      id,
      command,
      headers: { [subjectHeader]: userSubject(tenant, userId) },
      user: { id: userId },
    });
  const { state } = await load(user, { tenant, id: userId });
  if (state.username !== undefined) {
    if (email !== undefined && email !== state.email) {
      const profile = { email, displayName: displayName ?? state.displayName };
      await sendSealed(userId, changeProfile(profile));
    }
    return { userId, username: state.username };
  }
  for (const name of namesFrom(preferred ?? principal, userId)) {
    try {
      await sendSealed(name.toLowerCase(), claimUsername({ userId }));
    } catch (error) {
      if (hasCode(error, 'COMMAND_REJECTED')) continue;
      throw error;
    }
    await sendSealed(userId, registerUser({ username: name, email, displayName }));
    return { userId, username: name };
  }
  throw new MillraceError(
    'COMMAND_REJECTED',
    'Too many users have this name. Choose another one.',
    {
      details: { reason: 'username-taken' },
    },
  );
}

/** `Zoë K.` → `Zo-K.`, then `Zo-K.-2`, … */
function* namesFrom(preferred: string, userId: string): Generator<string> {
  const cut = preferred
    .replace(/@.*$/s, '')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, nameCharsMax);
  const first = usernameSchema.safeParse(cut).success
    ? cut
    : `user-${userId}`.slice(0, nameCharsMax);
  yield first;
  for (let count = 2; count <= namesMax; count += 1) yield `${first}-${count}`;
}
