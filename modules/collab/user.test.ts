import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPlatform, type Platform } from 'millrace/platform';
import { isForgotten } from 'millrace/store';
import { documentsOf } from 'millrace/projections';
import { eventually, given } from 'millrace/testing';
import { collab } from './collab.ts';
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
import { ensureUser, user, userIdOf, usernames, userProjection, userSubject } from './user.ts';

const zoe = { username: 'zoe', email: 'zoe@example.org', displayName: 'Zoë' };
const registered = [userRegistered(zoe)];

test('a user registers once, under one name', () => {
  given(user, [])
    .when(registerUser(zoe))
    .then([userRegistered(zoe)]);
  given(user, registered).when(registerUser(zoe)).then([]);
  given(user, registered)
    .when(registerUser({ username: 'eva' }))
    .thenRejected('user-exists');
  given(user, []).when(registerUser(zoe), { id: 'bot' }).thenRejected('user-reserved');
});

test('an unchanged profile causes no event', () => {
  const { email, displayName } = zoe;
  given(user, registered).when(changeProfile({ email, displayName })).then([]);
  given(user, registered)
    .when(changeProfile({ email: 'z@example.org' }))
    .then([userProfileChanged({ email: 'z@example.org' })])
    .thenState(({ email: kept, displayName: shown }) => kept === 'z@example.org' && !shown);
  given(user, []).when(changeProfile({})).thenRejected('user-unknown');
});

test('the default e-mail preference is mentions', () => {
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
    .thenRejected('user-unknown');
});

test('the first claim of a name wins', () => {
  given(usernames, [])
    .when(claimUsername({ userId: 'u-1' }))
    .then([usernameClaimed({ userId: 'u-1' })]);
  const claimed = [usernameClaimed({ userId: 'u-1' })];
  given(usernames, claimed)
    .when(claimUsername({ userId: 'u-1' }))
    .then([]);
  given(usernames, claimed)
    .when(claimUsername({ userId: 'u-2' }))
    .thenRejected('username-taken');
});

const tenant = 'core';

async function rig(): Promise<Platform> {
  return createPlatform({ engines: { store: 'memory:' }, modules: [collab()] });
}

function ensure(platform: Platform, principal: string, more: object = {}): Promise<object> {
  const { load } = platform;
  const context = {
    load,
    send: (...asked: Parameters<Platform['handle']>) => platform.handle(...asked),
  };
  return ensureUser(context, { tenant, principal, ...more });
}

test('the user id is the name of the principal, or a hash if it is not an id', () => {
  assert.equal(userIdOf('ada.l-1'), 'ada.l-1');
  const derived = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-/;
  for (const principal of [
    'bot',
    'ada@example.org',
    '+49 30 1234567',
    '0301234567',
    'auth0|1',
    '',
  ]) {
    assert.match(userIdOf(principal), derived);
    assert.equal(userIdOf(principal), userIdOf(principal));
  }
});

test('user names are derived from the preferred name and unique case-insensitively', async () => {
  await using platform = await rig();
  assert.deepEqual(await ensure(platform, 'ada'), { userId: 'ada', username: 'ada' });
  const other = { username: 'ADA' };
  assert.deepEqual(await ensure(platform, 'b', other), { userId: 'b', username: 'ADA-2' });
  assert.deepEqual(await ensure(platform, 'b', other), { userId: 'b', username: 'ADA-2' });
  assert.deepEqual(await ensure(platform, 'c', { username: 'Zoë K.' }), {
    userId: 'c',
    username: 'Zo-K.',
  });
  assert.deepEqual(await ensure(platform, 'd', { username: 'none' }), {
    userId: 'd',
    username: 'user-d',
  });
  const mail = await ensure(platform, 'eve@example.org');
  assert.deepEqual(mail, { userId: userIdOf('eve@example.org'), username: 'eve' });
});

test('concurrent registrations with one name get different names', async () => {
  await using platform = await rig();
  const found = await Promise.all(
    ['a', 'b', 'c'].map((principal) => ensure(platform, principal, { username: 'sam' })),
  );
  const names = found.map((each) => (each as { readonly username: string }).username);
  assert.deepEqual(names.toSorted(), ['sam', 'sam-2', 'sam-3']);
});

test('a forgotten user has neither name nor address', async () => {
  await using platform = await rig();
  await ensure(platform, 'ada', { email: 'ada@example.org' });
  await ensure(platform, 'ada', { email: 'new@example.org' });
  const load = async () => (await platform.load(user, { tenant, id: 'ada' })).state;
  assert.equal((await load()).email, 'new@example.org');
  const { store } = platform.engines;
  await store.forget(userSubject(tenant, 'ada'));
  const { email, username } = await load();
  assert.deepEqual([email, username], [undefined, undefined]);
  const events = await Array.fromAsync(store.readAll());
  assert.ok(events.every(({ payload }) => isForgotten(payload)));
});

test('the document of a forgotten user is removed', async () => {
  await using platform = await rig();
  await platform.start();
  await ensure(platform, 'ada', { displayName: 'Ada L.' });
  const { store, readModels } = platform.engines;
  const documents = documentsOf(readModels, userProjection.readModel);
  await eventually(async () => (await documents.get(tenant, 'ada')) !== undefined);
  await store.forget(userSubject(tenant, 'ada'));
  await eventually(async () => (await documents.get(tenant, 'ada')) === undefined);
  assert.equal(await documents.byIndex(tenant, 'username', 'ada'), undefined);
});
