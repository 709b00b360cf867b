import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPlatform, type Platform } from 'millrace/platform';
import { isForgotten } from 'millrace/store';
import { collab, ensureUser, user, userIdOf, userSubject } from './index.ts';

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

test('an id is the principal’s name where that is one and tells nothing personal', () => {
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

test('names are unique without regard to case, and made of what came', async () => {
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

test('those who come at once under one name get one each', async () => {
  await using platform = await rig();
  const found = await Promise.all(
    ['a', 'b', 'c'].map((principal) => ensure(platform, principal, { username: 'sam' })),
  );
  const names = found.map((each) => (each as { readonly username: string }).username);
  assert.deepEqual(names.toSorted(), ['sam', 'sam-2', 'sam-3']);
});

test('who is forgotten has no address and no name any more', async () => {
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
