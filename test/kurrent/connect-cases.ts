// Finding the server, being let in, and a server that is not there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KurrentServerOptions } from '../../src/server/kurrent/index.ts';
import { serveMemory, type ClientCases } from './client-cases.ts';
import { collect, event, idsOf, refused, unique, type OfficialClient } from './official-clients.ts';
import { throwawayCertificate } from './throwaway-certificate.ts';

/** gRPC's code. */
const unavailable = 14;

/** Node takes no address for the name of a TLS server. */
const byName = (url: string): string => url.replace('127.0.0.1', 'localhost');

export const connectCases: ClientCases = ({ kind, served }) => {
  const { port } = served.server;
  const quick = 'discoveryInterval=1';

  test('several hosts: the client asks for the cluster and finds the one node', async () => {
    await using client = kind.connect(
      `kurrentdb://127.0.0.1:${port},127.0.0.1:${port}?tls=false&${quick}`,
    );
    await worksWith(client);
  });

  test('discovery by name: the client asks for the cluster and finds the one node', async () => {
    await using client = kind.connect(`kurrentdb+discover://127.0.0.1:${port}?tls=false&${quick}`);
    await worksWith(client);
  });

  for (const preference of ['leader', 'random'] as const) {
    test(`discovery: the one node is found by who prefers ${preference}`, async () => {
      await using client = kind.connect(
        `kurrentdb+discover://127.0.0.1:${port}?tls=false&nodePreference=${preference}&${quick}`,
      );
      await worksWith(client);
    });
  }

  test('a name in the place of an address', async () => {
    await using client = kind.connect(`kurrentdb://localhost:${port}?tls=false&${quick}`);
    await worksWith(client);
  });

  test('what needs a leader is done by the one node', async () => {
    await using client = kind.connect(served.url);
    const stream = unique();
    await client.append(stream, event());
    const options = { requiresLeader: true };
    assert.equal((await collect(client.api.readStream(stream, options))).length, 1);
    await client.api.deleteStream(stream, options);
  });

  test('no server: the call fails as unavailable', async () => {
    const gone = await serveMemory();
    await gone[Symbol.asyncDispose]();
    await using client = kind.connect(gone.url);
    // Asked for the server's features first, the clients pass gRPC's own error on.
    await assert.rejects(() => client.append(unique(), event()), { code: unavailable });
  });

  test('over TLS: the certificate is checked against the authority that was given', async () => {
    using certificate = throwawayCertificate();
    await using secure = await serveMemory({ tls: certificate });
    const url = `${byName(secure.url)}&tlsCAFile=${certificate.authorityFile}`;
    await using client = kind.connect(url);
    await worksWith(client);
  });

  test('over TLS: a certificate of nobody knows whom is refused', async () => {
    using certificate = throwawayCertificate();
    await using secure = await serveMemory({ tls: certificate });
    await using client = kind.connect(byName(secure.url));
    await assert.rejects(() => client.append(unique(), event()));
  });

  const onlyJane: NonNullable<KurrentServerOptions['authenticate']> = (credentials) => {
    if (credentials?.kind !== 'basic' || credentials.password !== 'secret') return undefined;
    const mayWrite = credentials.username === 'jane';
    return { mayRead: true, mayWrite, isAdmin: mayWrite, name: credentials.username };
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

  test('credentials of the connection let its calls in', () =>
    withUsers('jane:secret@', (client) => worksWith(client)));

  test('a wrong password is refused as access denied, in every kind of call', () =>
    withUsers('jane:wrong@', async (client) => {
      await refused('access-denied', () => client.append(unique(), event()));
      await refused('access-denied', () => collect(client.api.readStream(unique())));
      await refused('access-denied', () => client.api.deleteStream(unique()));
    }));

  test('who may only read is refused when it writes', () =>
    withUsers('reader:secret@', async (client) => {
      await refused('access-denied', () => client.append(unique(), event()));
      await refused('stream-not-found', () => collect(client.api.readStream(unique())));
    }));

  test('credentials of a call come before those of the connection', () =>
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
