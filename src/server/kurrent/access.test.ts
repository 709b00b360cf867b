import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAccess, parseCredentials } from './access.ts';
import { tenantOfStream } from '../../contracts/stream-name.ts';
import type { StreamOwner } from '../../store/stream-owners.ts';
import type { KurrentIdentity } from './kurrent-server.ts';
import { RpcError, status } from './rpc-error.ts';

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
  assert.equal((await open.identify(undefined)).isAdmin, true);
  const denying = createAccess({ authenticate: () => undefined }, ownerOf);
  await assert.rejects(
    denying.identify(basic('jane:x')),
    (error) => error instanceof RpcError && error.parts.status === status.unauthenticated,
  );
});

const ownerOf: StreamOwner = async (stream) => tenantOfStream(stream, undefined);

const admin: KurrentIdentity = { mayRead: true, mayWrite: true, isAdmin: true };
const user: KurrentIdentity = { mayRead: true, mayWrite: true, isAdmin: false };
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
  const table: readonly (readonly [KurrentIdentity, string, boolean, boolean])[] = [
    [admin, 'anything', true, true],
    [admin, '$settings', true, true],
    [admin, '$all', true, false],
    [admin, '$ce-orders', true, false],
    [user, 'anything', true, true],
    [user, '$$anything', true, true],
    [user, '$settings', false, false],
    [tenant, own, true, true],
    [tenant, `$$${own}`, true, true],
    [tenant, other, false, false],
    [tenant, `$$${other}`, false, false],
    [tenant, 'anything', false, false],
    [tenant, '$all', true, false],
    [tenantAdmin, '$settings', false, false],
    [admin, '$millrace-tokens', true, true],
    [user, '$millrace-tokens', false, false],
    [user, '$$$millrace-tokens', false, false],
    [tenantAdmin, '$$$millrace-tokens', false, false],
    [{ ...admin, mayWrite: false }, own, true, false],
    [{ ...admin, mayRead: false }, own, false, true],
  ];
  for (const [identity, stream, reads, writes] of table) {
    assert.equal(await access.mayRead(identity, stream), reads, `read ${stream}`);
    assert.equal(await may(access.checkWrite(identity, stream)), writes, `write ${stream}`);
  }
  assert.equal(await may(access.checkGroup(admin, '$all', 'manage')), true);
  assert.equal(await may(access.checkGroup(user, 'orders-1', 'manage')), false);
  assert.equal(await may(access.checkGroup(user, 'orders-1', 'read')), true);
  // Groups on these sources would deliver system events.
  for (const source of ['$all', '$et-$token-created']) {
    assert.equal(await may(access.checkGroup(user, source, 'read')), false);
  }
  assert.equal(await may(access.checkGroup(tenantAdmin, own, 'manage')), true);
  assert.equal(
    await may(access.checkGroup(tenantAdmin, '$ce-banking.account.v1', 'manage')),
    false,
  );
});

test('a restricted identity sees only its events of $all', () => {
  const access = createAccess({}, ownerOf);
  assert.equal(access.visible(admin), undefined);
  const streams = ['banking.account.v1-core-1', 'banking.account.v1-other-1', 'a', '$$a', '$b'];
  const seenBy = (identity: KurrentIdentity): readonly string[] =>
    streams.filter((stream) =>
      access.visible(identity)?.({ stream, tenant: tenantOfStream(stream, undefined) }),
    );
  assert.deepEqual(seenBy(user), streams.slice(0, 4));
  assert.deepEqual(seenBy(tenant), streams.slice(0, 1));
  assert.deepEqual(seenBy(tenantAdmin), streams.slice(0, 1));
});

test('without authentication internal streams of Millrace are read-only', async () => {
  const access = createAccess({}, ownerOf);
  const anybody = await access.identify(undefined);
  for (const stream of ['$millrace-tokens', '$$$millrace-tokens']) {
    await assert.rejects(access.checkWrite(anybody, stream), RpcError);
  }
  await access.checkWrite(anybody, '$settings');
});

test('an ended identity is rejected like an unknown one', async () => {
  const ended = AbortSignal.abort();
  const access = createAccess({ authenticate: () => ({ ...admin, ended }) }, ownerOf);
  await assert.rejects(
    access.identify(basic('jane:x')),
    (error) => error instanceof RpcError && error.parts.status === status.unauthenticated,
  );
});
