// Users of a tenant: the aggregate, the unique user names, the read model, and registration at the first sign-in.

import { defineAggregate, Refused } from 'millrace/aggregates';
import { botId, username as usernameSchema } from './fields.ts';
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
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { NewCommand } from 'millrace/contracts';
import { hasCode, idFromKey, MillraceError } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { subjectHeader } from 'millrace/store';

export interface UserState {
  /** Undefined: not registered, or forgotten. */
  readonly username: string | undefined;
  readonly email: string | undefined;
  readonly displayName: string | undefined;
  readonly emailPreference: EmailPreference;
}

const nobody: UserState = {
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
  initial: nobody,
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
      if (id === botId) throw new Refused('user-reserved', 'that id is the one of the bot');
      if (username === undefined) return userRegistered(registration);
      if (username === registration.username) return [];
      throw new Refused('user-exists', `${id} is registered as another one`);
    },
    'user.change-profile': (profile, state, { id }) => {
      known(state, id);
      const isSame = profile.email === state.email && profile.displayName === state.displayName;
      return isSame ? [] : userProfileChanged(profile);
    },
    'user.change-preferences': (preferences, state, { id }) => {
      known(state, id);
      return preferences.email === state.emailPreference ? [] : userPreferencesChanged(preferences);
    },
  },
});

export interface UsernameState {
  /** Undefined: it is free. */
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
      throw new Refused('username-taken', `somebody else is called ${id}`);
    },
  },
});

function known({ username }: UserState, id: string): void {
  if (username === undefined) throw new Refused('user-unknown', `there is no user ${id}`);
}

export interface UserDocument {
  readonly userId: string;
  readonly username: string;
  readonly displayName?: string;
  readonly emailPreference: EmailPreference;
  readonly registeredAt: string;
}

type Registered = ProjectedEvent<ReturnType<typeof userRegistered.parse>>;
type ProfileChanged = ProjectedEvent<ReturnType<typeof userProfileChanged.parse>>;
type PreferencesChanged = ProjectedEvent<ReturnType<typeof userPreferencesChanged.parse>>;

export const userProjection = projection({
  name: 'sub:collab:user-projection:v1',
  readModel: readModel<UserDocument>({
    bc: 'collab',
    aggregate: 'user',
    version: 1,
    indexes: { username: ({ username }) => username.toLowerCase() },
  }),
  on: {
    'user.registered.v1': (_before, { payload, aggregate, occurredAt }: Registered) => ({
      userId: aggregate.id,
      username: payload.username,
      ...(payload.displayName === undefined ? {} : { displayName: payload.displayName }),
      emailPreference: emailPreferenceDefault,
      registeredAt: occurredAt,
    }),
    'user.profile-changed.v1': (before, { payload: { displayName } }: ProfileChanged) => {
      if (before === null) return null;
      const { displayName: _old, ...rest } = before;
      return displayName === undefined ? rest : { ...rest, displayName };
    },
    'user.preferences-changed.v1': (before, { payload }: PreferencesChanged) =>
      before === null ? null : { ...before, emailPreference: payload.email },
  },
  onForgotten: () => null,
});

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
  const first = usernameSchema.safeParse(cut).success
    ? cut
    : `user-${userId}`.slice(0, nameCharsMax);
  yield first;
  for (let count = 2; count <= namesMax; count += 1) yield `${first}-${count}`;
}
