// A user of a tenant, and the names that users hold.

import { defineAggregate, Refused } from 'millrace/aggregates';
import { botId } from './fields.ts';
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
