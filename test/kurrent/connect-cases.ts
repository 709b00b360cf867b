// Discovery, credentials, TLS, and a missing server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KurrentServerOptions } from '../../src/server/kurrent/index.ts';
import { serveMemory, type ClientCases } from './client-cases.ts';
import {
  collect,
  event,
  idsOf,
  rejectsWith,
  unique,
  type OfficialClient,
} from './official-clients.ts';
import { throwawayCertificate } from '../../src/testing/support/throwaway-certificate.ts';

/** The gRPC status code. */
const unavailable = 14;

/** Node does not accept an IP address as a TLS server name. */
const byName = (url: string): string => url.replace('127.0.0.1', 'localhost');

export const connectCases: ClientCases = ({ kind, served }) => {
  const { port } = served.server;
  const quick = 'discoveryInterval=1';

  test('a client with several hosts requests the cluster members and finds the only node', async () => {
    await using client = kind.connect(
      `kurrentdb://127.0.0.1:${port},127.0.0.1:${port}?tls=false&${quick}`,
    );
    await worksWith(client);
  });

  test('a client with discovery by name requests the cluster members and finds the only node', async () => {
    await using client = kind.connect(`kurrentdb+discover://127.0.0.1:${port}?tls=false&${quick}`);
    await worksWith(client);
  });

  for (const preference of ['leader', 'random'] as const) {
    test(`a discovering client that prefers ${preference} finds the only node`, async () => {
      await using client = kind.connect(
        `kurrentdb+discover://127.0.0.1:${port}?tls=false&nodePreference=${preference}&${quick}`,
      );
      await worksWith(client);
    });
  }

  test('connects by host name', async () => {
    await using client = kind.connect(`kurrentdb://localhost:${port}?tls=false&${quick}`);
    await worksWith(client);
  });

  test('the only node handles calls that require a leader', async () => {
    await using client = kind.connect(served.url);
    const stream = unique();
    await client.append(stream, event());
    const options = { requiresLeader: true };
    assert.equal((await collect(client.api.readStream(stream, options))).length, 1);
    await client.api.deleteStream(stream, options);
  });

  test('a call without a server fails as unavailable', async () => {
    const stopped = await serveMemory();
    await stopped[Symbol.asyncDispose]();
    await using client = kind.connect(stopped.url);
    // Clients that request server features first return the gRPC error.
    await assert.rejects(() => client.append(unique(), event()), { code: unavailable });
  });

  test('a client verifies the TLS certificate with the given authority', async () => {
    using certificate = throwawayCertificate();
    await using secure = await serveMemory({ tls: certificate });
    const url = `${byName(secure.url)}&tlsCAFile=${certificate.authorityFile}`;
    await using client = kind.connect(url);
    await worksWith(client);
  });

  test('a client rejects the certificate of an unknown authority', async () => {
    using certificate = throwawayCertificate();
    await using secure = await serveMemory({ tls: certificate });
    await using client = kind.connect(byName(secure.url));
    await assert.rejects(() => client.append(unique(), event()));
  });

  const onlyJane: NonNullable<KurrentServerOptions['authenticate']> = (credentials) => {
    if (credentials?.kind !== 'basic' || credentials.password !== 'secret') return undefined;
    const { username: name } = credentials;
    return { scopes: [name === 'jane' ? 'admin' : 'read'], name };
  };

  async function withUsers(
    user: string,
    work: (client: OfficialClient) => Promise<void>,
  ): Promise<void> {
    using certificate = throwawayCertificate();
    await using secure = await serveMemory({ tls: certificate, authenticate: onlyJane });
    const url = `${byName(secure.url)}&tlsCAFile=${certificate.authorityFile}`;
    await using client = kind.connect(url.replace('://', `://${user}`));
    await work(client);
  }

  test('credentials of the connection are used for its calls', () =>
    withUsers('jane:secret@', (client) => worksWith(client)));

  test('a wrong password is rejected as access denied, in every kind of call', () =>
    withUsers('jane:wrong@', async (client) => {
      await rejectsWith('access-denied', () => client.append(unique(), event()));
      await rejectsWith('access-denied', () => collect(client.api.readStream(unique())));
      await rejectsWith('access-denied', () => client.api.deleteStream(unique()));
    }));

  test('a read-only caller cannot write', () =>
    withUsers('reader:secret@', async (client) => {
      await rejectsWith('access-denied', () => client.append(unique(), event()));
      await rejectsWith('stream-not-found', () => collect(client.api.readStream(unique())));
    }));

  test('credentials of a call take precedence over those of the connection', () =>
    withUsers('jane:wrong@', async (client) => {
      const stream = unique();
      const credentials = { username: 'jane', password: 'secret' };
      await client.append(stream, event(), 'any', { credentials });
      const read = await collect(client.api.readStream(stream, { credentials }));
      assert.equal(read.length, 1);
    }));
};

async function worksWith(client: OfficialClient): Promise<void> {
  const stream = unique();
  const sent = event();
  await client.append(stream, sent, 'no_stream');
  assert.deepEqual(idsOf(await collect(client.api.readStream(stream))), [sent.id]);
  const [followed] = await collect(client.api.subscribeToStream(stream), 1);
  assert.equal(followed?.event?.id, sent.id);
}
