import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import {
  AccessDeniedError,
  binaryEvent,
  jsonEvent,
  KurrentDBClient,
  persistentSubscriptionToStreamSettingsFromDefaults,
  START,
  UnavailableError,
} from '@kurrent/kurrentdb-client';
import { openMemory } from '../../engines/memory/index.ts';
import { hasCode } from '../../foundation/error.ts';
import { seededRandom } from '../../testing/seeded-random.ts';
import type { AppendResult, EventStore } from '../../store/event-store.ts';
import {
  kurrentStoreOptions,
  startKurrentServer,
  type KurrentIdentity,
  type KurrentServer,
} from './index.ts';

const event = (type = 'a') => jsonEvent({ type, data: {} });

function connect({ url }: KurrentServer, more = ''): KurrentDBClient {
  return KurrentDBClient.connectionString`${url}&discoveryInterval=1${more}`;
}

test('addresses other than loopback need authentication and TLS', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await assert.rejects(startKurrentServer(store, { host: '0.0.0.0', port: 0 }), (error) =>
    hasCode(error, 'CONFIG_INVALID'),
  );
  // Passwords would be sent unencrypted.
  const options = { host: '0.0.0.0', port: 0, authenticate: () => undefined };
  await assert.rejects(
    startKurrentServer(store, options),
    (error) => hasCode(error, 'CONFIG_INVALID') && error.details['field'] === 'tls',
  );
});

test('the error of a used port names the port', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await using server = await startKurrentServer(store, { port: 0 });
  await assert.rejects(
    startKurrentServer(store, { port: server.port }),
    (error) => hasCode(error, 'SERVER_UNAVAILABLE') && error.message.includes(String(server.port)),
  );
});

test('a client that discovers its cluster finds the only member', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await using server = await startKurrentServer(store, { port: 0 });
  const url = server.url.replace('kurrentdb://', 'kurrentdb+discover://');
  const client = KurrentDBClient.connectionString`${url}&discoveryInterval=1`;
  await client.appendToStream('a-1', [event()]);
  assert.equal((await Array.fromAsync(client.readStream('a-1'))).length, 1);
  await client.dispose();
});

test('stopping the server ends subscriptions as unavailable, after running appends complete', async () => {
  const store = openMemory(kurrentStoreOptions).store;
  const gate = Promise.withResolvers<void>();
  const appendStarted = Promise.withResolvers<void>();
  const slow: EventStore = {
    ...store,
    async append(...args): Promise<AppendResult> {
      appendStarted.resolve();
      await gate.promise;
      return store.append(...args);
    },
  };
  const server = await startKurrentServer(slow, { port: 0 });
  const client = connect(server);
  const subscription = client.subscribeToAll({ fromPosition: START });
  subscription.resume();
  await once(subscription, 'confirmation');
  const ended = once(subscription, 'error');
  const appended = client.appendToStream('a-1', [event()]);
  await appendStarted.promise;
  let isStopped = false;
  const stopped = server[Symbol.asyncDispose]().then(() => (isStopped = true));
  assert.ok((await ended)[0] instanceof UnavailableError);
  assert.equal(isStopped, false);
  gate.resolve();
  assert.equal((await appended).success, true);
  await stopped;
  await client.dispose();
  await store[Symbol.asyncDispose]();
});

test('a signal stops the server', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  const stopping = new AbortController();
  const server = await startKurrentServer(store, { port: 0, signal: stopping.signal });
  stopping.abort();
  await server[Symbol.asyncDispose]();
  await using again = await startKurrentServer(store, { port: server.port });
  assert.equal(again.port, server.port);
});

test('starts and stops in any order leave the port free', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  const random = seededRandom(11);
  const first = await startKurrentServer(store, { port: 0 });
  const { port } = first;
  await Promise.all([first[Symbol.asyncDispose](), first[Symbol.asyncDispose]()]);
  let started = 0;
  for (let round = 0; round < 50; round += 1) {
    const stopping = new AbortController();
    const starting = startKurrentServer(store, { port, signal: stopping.signal });
    for (let turn = random.below(6); turn > 0; turn -= 1) await new Promise(setImmediate);
    stopping.abort();
    try {
      await (await starting)[Symbol.asyncDispose]();
      started += 1;
    } catch (error) {
      assert.ok(hasCode(error, 'ABORTED'), String(error));
    }
  }
  assert.ok(started > 0 && started < 50, `${started} of 50 were started before they were stopped`);
  await using last = await startKurrentServer(store, { port });
  assert.equal(last.port, port);
});

test('serves the protocol over TLS', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await using server = await startKurrentServer(store, secure());
  assert.match(server.url, /tls=true$/);
  const client = connect(server, '&tlsVerifyCert=false');
  await client.appendToStream('a-1', [event()]);
  await client.dispose();
});

/** Clients send credentials only over TLS. */
const secure = () => ({
  port: 0,
  tls: { cert: localhostCert, key: localhostKey },
});

const identities: Readonly<Record<string, KurrentIdentity>> = {
  admin: { scopes: ['admin'] },
  reader: { scopes: ['read'] },
  core: { tenant: 'core', scopes: ['read', 'append'] },
};

test('unknown callers are rejected, and readers cannot write', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await using server = await startKurrentServer(store, {
    ...secure(),
    authenticate: (credentials) =>
      credentials?.kind === 'basic' && credentials.password === 'secret'
        ? identities[credentials.username]
        : undefined,
  });
  const client = connect(server, '&tlsVerifyCert=false');
  const as = (username: string, password = 'secret') => ({ credentials: { username, password } });
  await assert.rejects(client.appendToStream('a-1', [event()], as('admin', 'wrong')));
  await client.appendToStream('a-1', [event()], as('admin'));
  await assert.rejects(client.appendToStream('a-1', [event()], as('reader')), AccessDeniedError);
  await assert.rejects(client.deleteStream('a-1', as('reader')), AccessDeniedError);
  const settings = persistentSubscriptionToStreamSettingsFromDefaults();
  await assert.rejects(
    client.createPersistentSubscriptionToStream('a-1', 'g', settings, as('reader')),
    AccessDeniedError,
  );
  const read = await Array.fromAsync(client.readStream('a-1', as('reader')));
  assert.equal(read.length, 1);
  await client.dispose();
});

test('a tenant has access to its own streams, and sees only its events of $all', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await using server = await startKurrentServer(store, {
    ...secure(),
    authenticate: (credentials) =>
      credentials?.kind === 'basic' ? identities[credentials.username] : undefined,
  });
  const client = connect(server, '&tlsVerifyCert=false');
  const as = (username: string) => ({ credentials: { username, password: 'x' } });
  const own = 'banking.account.v1-core-1';
  const foreign = 'banking.account.v1-other-1';
  await client.appendToStream(own, [event('mine')], as('core'));
  await client.appendToStream(foreign, [event('theirs')], as('admin'));
  for (const stream of [foreign, 'anything', '$settings']) {
    await assert.rejects(client.appendToStream(stream, [event()], as('core')), AccessDeniedError);
    await assert.rejects(Array.fromAsync(client.readStream(stream, as('core'))), AccessDeniedError);
  }
  for (const reads of [
    client.readAll(as('core')),
    client.readStream('$ce-banking.account.v1', { resolveLinkTos: true, ...as('core') }),
  ]) {
    const types = (await Array.fromAsync(reads)).map((read) => read.event?.type);
    assert.deepEqual(types, ['mine']);
  }
  const link = (to: string) => binaryEvent({ type: '$>', data: Buffer.from(to) });
  const ways = [link(`0@${own}`), link(`0@${foreign}`), link('2@$ce-banking.account.v1')];
  await client.appendToStream('banking.link.v1-core-1', ways, as('core'));
  const resolved = client.readStream('banking.link.v1-core-1', {
    resolveLinkTos: true,
    ...as('core'),
  });
  const behind = (await Array.fromAsync(resolved)).map((read) => read.event?.type);
  assert.deepEqual(behind, ['mine', undefined, undefined]);
  await client.dispose();
});

// A public test key for 127.0.0.1.
const localhostCert = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUWaqY84tMoOzydbOcEHRNGsOl1nQwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNjAyMjUxN1oYDzIxMjYxMDIz
MDIyNTE3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATXgl+k3ZfIYqKSHwdABMxii90T1ar7uwHCeEIzRgOEcYKWOsGL6kY1
41/D9PWUnEWUz2krIat/3zEHodfFHNgto28wbTAdBgNVHQ4EFgQUl1cGwabGteCk
PBFE0ZhCdamm9fMwHwYDVR0jBBgwFoAUl1cGwabGteCkPBFE0ZhCdamm9fMwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhAL2Ai9dG6Ul+hwPvUYZVHYKgS3HgVnWin7yNS62a4T+bAiEA
yBjLieRKIy0a/0J5DMK0gl+iORCZCvPfRGePG+I2pck=
-----END CERTIFICATE-----
`;

const localhostKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgcN/Hu0vvIELb3xvr
RGf5VCsDNr0EJ9cbLDl9fmU2HrGhRANCAATXgl+k3ZfIYqKSHwdABMxii90T1ar7
uwHCeEIzRgOEcYKWOsGL6kY141/D9PWUnEWUz2krIat/3zEHodfFHNgt
-----END PRIVATE KEY-----
`;
