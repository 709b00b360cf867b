import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../../foundation/error.ts';
import { createAddressGuard, isPublicAddress } from './address-guard.ts';

const privateOnes = [
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  'fe80::1',
  'fe80::1%eth0',
  'fc00::1',
  'fd12:3456::1',
  'ff02::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '3fff::1',
  'not an address',
  '',
];

test('private, loopback and unallocated addresses are not public', () => {
  for (const address of privateOnes) assert.equal(isPublicAddress(address), false, address);
  for (const address of ['1.1.1.1', '100.63.255.255', '100.128.0.0', '172.32.0.1', '9.9.9.9']) {
    assert.equal(isPublicAddress(address), true, address);
  }
  for (const address of ['2606:4700:4700::1111', '2a00:1450:4001::1']) {
    assert.equal(isPublicAddress(address), true, address);
  }
});

test('rejects every IPv4 address in its IPv6 forms', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      assert.equal(isPublicAddress(`::ffff:${address}`), false);
      assert.equal(isPublicAddress(`::${address}`), false);
      assert.equal(isPublicAddress(`64:ff9b::${address}`), false);
    }),
  );
});

test('checks a host that is an address in every spelling of a URL', () => {
  const guard = createAddressGuard();
  for (const host of [
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    '0177.0.0.1',
    '[::1]',
    '[::ffff:7f00:1]',
  ]) {
    const { hostname } = new URL(`https://${host}/`);
    assert.throws(() => guard.checkHost(hostname), { code: 'ADDRESS_FORBIDDEN' }, host);
  }
  guard.checkHost('1.1.1.1');
  guard.checkHost('[2606:4700:4700::1111]');
  // A name is checked when it is resolved.
  guard.checkHost('localhost');
});

const v4 = (address: string): LookupAddress => ({ address, family: 4 });

function lookup(
  guard: ReturnType<typeof createAddressGuard>,
  options: { all?: boolean; family?: number } = {},
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    guard.lookup('hooks.example', options, (error, found) => {
      if (error === null) resolve(found);
      else reject(error);
    });
  });
}

test('rejects a name that resolves to a private address, even among public ones', async () => {
  for (const found of [[v4('127.0.0.1')], [v4('1.1.1.1'), v4('10.0.0.8')]]) {
    const guard = createAddressGuard({ resolve: async () => found });
    await assert.rejects(lookup(guard), (error) => hasCode(error, 'ADDRESS_FORBIDDEN'));
  }
});

test('connects to the addresses that were checked', async () => {
  const found = [v4('1.1.1.1'), { address: '2606:4700::1', family: 6 }];
  const guard = createAddressGuard({ resolve: async () => found });
  assert.deepEqual(await lookup(guard, { all: true }), found);
  assert.equal(await lookup(guard), '1.1.1.1');
  assert.equal(await lookup(guard, { family: 6 }), '2606:4700::1');
  const only4 = createAddressGuard({ resolve: async () => [v4('1.1.1.1')] });
  await assert.rejects(lookup(only4, { family: 6 }));
  await assert.rejects(lookup(createAddressGuard({ resolve: async () => [] })));
});

test('allows a configured range and nothing outside it', () => {
  const guard = createAddressGuard({ allow: ['10.1.0.0/16', 'fd00::/8'] });
  guard.checkHost('10.1.2.3');
  guard.checkHost('[fd12::1]');
  for (const host of ['10.2.0.1', '[fe80::1]']) {
    assert.throws(() => guard.checkHost(host), { code: 'ADDRESS_FORBIDDEN' });
  }
});

test('rejects an invalid range at once', () => {
  for (const range of ['10.0.0.0', '10.0.0.0/33', '::/129', 'localhost/8', '10.0.0.0/', '1/1/1']) {
    assert.throws(() => createAddressGuard({ allow: [range] }), { code: 'CONFIG_INVALID' }, range);
  }
});
