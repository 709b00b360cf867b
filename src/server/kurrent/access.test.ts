import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tenantOfStream } from '../../contracts/stream-name.ts';
import type { StreamOwner } from '../../store/stream-owners.ts';
import { createAccess, parseCredentials } from './access.ts';
import type { KurrentIdentity } from './kurrent-server.ts';
import { RpcError, status } from './rpc-error.ts';

const ownerOf: StreamOwner = async (stream) => tenantOfStream(stream, undefined);

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

test('parses credentials, and ignores unsupported headers', () => {
  assert.deepEqual(parseCredentials(basic('jane:a:b')), {
    kind: 'basic',
    username: 'jane',
    password: 'a:b',
  });
  assert.deepEqual(parseCredentials('bearer abc.def'), { kind: 'bearer', token: 'abc.def' });
  for (const header of [undefined, '', 'Basic', basic('nocolon'), 'Digest x']) {
    assert.equal(parseCredentials(header), undefined);
  }
});

test('without authentication all callers have full access; with it only known ones', async () => {
  const open = createAccess({}, ownerOf);
  assert.deepEqual((await open.identify(undefined)).scopes, ['admin']);
  const denying = createAccess({ authenticate: () => undefined }, ownerOf);
  await assert.rejects(
    denying.identify(basic('jane:x')),
    (error) => error instanceof RpcError && error.parts.status === status.unauthenticated,
  );
});

const admin: KurrentIdentity = { scopes: ['admin'] };
const user: KurrentIdentity = { scopes: ['read', 'append'] };
const tenant: KurrentIdentity = { ...user, tenant: 'core' };
const tenantAdmin: KurrentIdentity = { ...admin, tenant: 'core' };

test('checks read and write access by identity and stream', async () => {
  const access = createAccess({}, ownerOf);
  const may = async (check: Promise<void>): Promise<boolean> => {
    try {
      await check;
      return true;
    } catch (error) {
      assert.ok(error instanceof RpcError && error.parts.exception === 'access-denied');
      return false;
    }
  };
  const own = 'banking.account.v1-core-1';
  const other = 'banking.account.v1-other-1';
  const keyStream = 'millrace.subjectKeys-0a1b';
  const cleaner: KurrentIdentity = { scopes: ['delete'], tenant: 'core' };
  // The letters are the scopes that the identity may use on the stream: read, append, delete.
  const table: readonly (readonly [KurrentIdentity, string, string])[] = [
    [admin, 'anything', 'rad'],
    [admin, '$$anything', 'rad'],
    [admin, '$settings', 'rad'],
    [admin, keyStream, 'rad'],
    [user, keyStream, ''],
    [user, `$$${keyStream}`, ''],
    [tenant, keyStream, ''],
    [admin, '$all', 'r'],
    [admin, '$ce-orders', 'r'],
    [user, 'anything', 'ra'],
    // The metadata of a stream can remove its events.
    [user, '$$anything', 'r'],
    [user, '$settings', ''],
    [tenant, own, 'ra'],
    [tenant, `$$${own}`, 'r'],
    [tenant, other, ''],
    [tenant, `$$${other}`, ''],
    [tenant, 'anything', ''],
    [tenant, '$all', 'r'],
    [cleaner, own, 'd'],
    [cleaner, `$$${own}`, 'ad'],
    [cleaner, other, ''],
    [cleaner, '$settings', ''],
    [tenantAdmin, own, 'rad'],
    [tenantAdmin, '$settings', ''],
    [admin, '$millrace-tokens', 'ra'],
    [admin, '$$$millrace-tokens', 'r'],
    [admin, '$persistentSubscriptionConfig', 'r'],
    [admin, '$persistentsubscription-a::b-checkpoint', 'r'],
    [admin, '$$$persistentSubscriptionConfig', 'r'],
    [user, '$millrace-tokens', ''],
    [user, '$$$millrace-tokens', ''],
    [tenantAdmin, '$$$millrace-tokens', ''],
    [{ scopes: ['read'] }, own, 'r'],
    [{ scopes: ['append'] }, own, 'a'],
    [{ scopes: ['operate'] }, own, 'r'],
    [{ scopes: ['use', 'work', 'bus'] }, own, ''],
  ];
  for (const [identity, stream, expected] of table) {
    let text = '';
    for (const scope of ['read', 'append', 'delete'] as const) {
      if (await may(access.check(identity, stream, scope))) text += scope[0];
    }
    assert.equal(text, expected, `${identity.scopes.join()} on ${stream}`);
    assert.equal(await access.mayRead(identity, stream), expected.includes('r'));
  }
  assert.equal(await may(access.checkGroup(admin, '$all', 'admin')), true);
  assert.equal(await may(access.checkGroup(user, 'orders-1', 'admin')), false);
  assert.equal(await may(access.checkGroup(user, 'orders-1', 'read')), true);
  // Groups on these sources would deliver system events.
  for (const source of ['$all', '$et-$token-created', '$ce-millrace.subjectKeys', keyStream]) {
    assert.equal(await may(access.checkGroup(user, source, 'read')), false);
  }
  assert.equal(await may(access.checkGroup(tenantAdmin, own, 'admin')), true);
  assert.equal(await may(access.checkGroup(tenantAdmin, '$ce-banking.account.v1', 'admin')), false);
});

test('a restricted identity sees only its events of $all', () => {
  const access = createAccess({}, ownerOf);
  assert.equal(access.visible(admin), undefined);
  const streams = ['banking.account.v1-core-1', 'banking.account.v1-other-1', 'a', '$$a', '$b'];
  streams.push('millrace.subjectKeys-0a1b', '$$millrace.subjectKeys-0a1b');
  const seenBy = (identity: KurrentIdentity): readonly string[] =>
    streams.filter((stream) =>
      access.visible(identity)?.({ stream, tenant: tenantOfStream(stream, undefined) ?? '' }),
    );
  assert.deepEqual(seenBy(user), streams.slice(0, 4));
  assert.deepEqual(seenBy(tenant), streams.slice(0, 1));
  assert.deepEqual(seenBy(tenantAdmin), streams.slice(0, 1));
});

test('without authentication system streams are read-only', async () => {
  const access = createAccess({}, ownerOf);
  const anybody = await access.identify(undefined);
  const streams = ['$millrace-tokens', '$persistentSubscriptionConfig', '$settings'];
  for (const stream of streams.flatMap((name) => [name, `$$${name}`])) {
    await access.check(anybody, stream, 'read');
    for (const scope of ['append', 'delete'] as const) {
      await assert.rejects(access.check(anybody, stream, scope), RpcError, stream);
    }
  }
  await access.check(anybody, 'orders-1', 'delete');
  await access.check(anybody, '$$orders-1', 'append');
});

test('an ended identity is rejected like an unknown one', async () => {
  const ended = AbortSignal.abort();
  const access = createAccess({ authenticate: () => ({ ...admin, ended }) }, ownerOf);
  await assert.rejects(
    access.identify(basic('jane:x')),
    (error) => error instanceof RpcError && error.parts.status === status.unauthenticated,
  );
});
