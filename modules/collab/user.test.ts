import { test } from 'node:test';
import { given } from 'millrace/testing';
import {
  changePreferences,
  changeProfile,
  claimUsername,
  registerUser,
  usernameClaimed,
  userPreferencesChanged,
  userProfileChanged,
  userRegistered,
} from './user-events.ts';
import { user, usernames } from './user.ts';

const zoe = { username: 'zoe', email: 'zoe@example.org', displayName: 'Zoë' };
const registered = [userRegistered(zoe)];

test('a user registers once, under one name', () => {
  given(user, [])
    .when(registerUser(zoe))
    .then([userRegistered(zoe)]);
  given(user, registered).when(registerUser(zoe)).then([]);
  given(user, registered)
    .when(registerUser({ username: 'eva' }))
    .thenRefused('user-exists');
  given(user, []).when(registerUser(zoe), { id: 'bot' }).thenRefused('user-reserved');
});

test('a profile that changes nothing is no event', () => {
  const { email, displayName } = zoe;
  given(user, registered).when(changeProfile({ email, displayName })).then([]);
  given(user, registered)
    .when(changeProfile({ email: 'z@example.org' }))
    .then([userProfileChanged({ email: 'z@example.org' })])
    .thenState(({ email: kept, displayName: shown }) => kept === 'z@example.org' && !shown);
  given(user, []).when(changeProfile({})).thenRefused('user-unknown');
});

test('mails are for mentions until the user wants otherwise', () => {
  given(user, registered).thenState(({ emailPreference }) => emailPreference === 'mentions');
  given(user, registered)
    .when(changePreferences({ email: 'all' }))
    .then([userPreferencesChanged({ email: 'all' })])
    .thenState(({ emailPreference }) => emailPreference === 'all');
  given(user, registered)
    .when(changePreferences({ email: 'mentions' }))
    .then([]);
  given(user, [])
    .when(changePreferences({ email: 'none' }))
    .thenRefused('user-unknown');
});

test('a name is held by the first who claims it', () => {
  given(usernames, [])
    .when(claimUsername({ userId: 'u-1' }))
    .then([usernameClaimed({ userId: 'u-1' })]);
  const held = [usernameClaimed({ userId: 'u-1' })];
  given(usernames, held)
    .when(claimUsername({ userId: 'u-1' }))
    .then([]);
  given(usernames, held)
    .when(claimUsername({ userId: 'u-2' }))
    .thenRefused('username-taken');
});
