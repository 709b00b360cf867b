// What a client may append or remove does not depend on the protocol: HTTP, and all append methods of gRPC.

import { jsonEvent, binaryEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAppendRules, createPlatform, type NewToken } from '../../src/platform/index.ts';
import { payments, pretendProvider } from '../../modules/payments/index.ts';
import { startApi } from '../../src/server/api/start-api.ts';
import {
  authenticateByTokens,
  kurrentStoreOptions,
  startKurrentServer,
} from '../../src/server/kurrent/index.ts';
import { throwawayCertificate } from '../../src/testing/support/throwaway-certificate.ts';

type Payload = Readonly<Record<string, string | number>>;
type Append = (stream: string, type: string, payload: Payload) => Promise<string>;

async function openServers() {
  await using opened = new AsyncDisposableStack();
  const certificate = opened.use(throwawayCertificate());
  const platform = opened.use(
    await createPlatform({
      engines: { store: 'memory:' },
      modules: [payments({ provider: pretendProvider() })],
      ...kurrentStoreOptions,
    }),
  );
  const api = opened.use(await startApi(platform, { port: 0 }));
  const server = opened.use(
    await startKurrentServer(platform.engines.store, {
      port: 0,
      tls: certificate,
      authenticate: authenticateByTokens(platform.tokens),
      accept: createAppendRules(platform.modules),
    }),
  );
  const all = opened.move();
  return {
    platform,
    /** A gRPC client and the four ways to append, with a new token. */
    async as(wanted: NewToken) {
      const { secret } = await platform.tokens.create(wanted);
      const client = KurrentDBClient.connectionString(
        `kurrentdb://${wanted.name}:${secret}@localhost:${server.port}?tls=true&tlsCAFile=${certificate.authorityFile}`,
      );
      all.defer(() => client.dispose());
      const outcome = async (work: Promise<unknown>): Promise<string> =>
        work.then(
          () => 'accepted',
          (error: unknown) =>
            (error as { readonly type?: string }).type === 'access-denied' ? 'denied' : 'rejected',
        );
      const ways: Readonly<Record<string, Append>> = {
        http: async (stream, type, payload) => {
          const response = await fetch(`${api.url}/api/v1/streams/${stream}/events`, {
            method: 'POST',
            headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
            body: JSON.stringify({ events: [{ type, payload }] }),
          });
          if (response.ok) return 'accepted';
          return response.status === 403 ? 'denied' : 'rejected';
        },
        // Credentials of the call select Append instead of BatchAppend.
        append: (stream, type, data) =>
          outcome(
            client.appendToStream(stream, jsonEvent({ type, data }), {
              credentials: { username: wanted.name, password: secret },
            }),
          ),
        batchAppend: (stream, type, data) =>
          outcome(client.appendToStream(stream, jsonEvent({ type, data }))),
        multiStreamAppend: (stream, type, data) =>
          outcome(
            client.multiStreamAppend([
              { streamName: stream, events: [jsonEvent({ type, data })], expectedState: 'any' },
            ]),
          ),
      };
      return { client, ways, outcome };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const opened = { currency: 'EUR', balance: 5 };
const account = (id: string): string => `banking.account.v1-core-${id}`;

/** Of a token with `append`, and of one with `admin`. */
const cases: readonly (readonly [string, string, string, Payload, string, string])[] = [
  [
    'a valid event of an aggregate',
    account('a'),
    'account.opened.v1',
    opened,
    'denied',
    'accepted',
  ],
  ['a wrong payload', account('b'), 'account.opened.v1', { balance: -1 }, 'denied', 'rejected'],
  ['an unknown type', account('c'), 'account.junk.v1', {}, 'denied', 'rejected'],
  [
    'an event type of an aggregate in another stream',
    'shop.order.v1-core-a',
    'account.opened.v1',
    opened,
    'rejected',
    'rejected',
  ],
  [
    'an event in the stream of a saga',
    'paymenthub.paymentProcess.v1-core-a',
    'payment-process.started.v1',
    {},
    'denied',
    'denied',
  ],
  ['an event of no module', 'shop.order.v1-core-b', 'order.placed.v1', {}, 'accepted', 'accepted'],
];

test('every way to append has the same rules', async () => {
  await using servers = await openServers();
  const shop = await servers.as({ name: 'shop', tenant: 'core', scopes: ['append'] });
  const ops = await servers.as({ name: 'ops', scopes: ['admin'] });
  for (const [what, stream, type, payload, forShop, forOps] of cases) {
    for (const [way, expected] of [
      ['shop', forShop],
      ['ops', forOps],
    ] as const) {
      const { ways } = way === 'shop' ? shop : ops;
      for (const [name, append] of Object.entries(ways)) {
        assert.equal(await append(stream, type, payload), expected, `${way}, ${name}: ${what}`);
      }
    }
  }
  const bytes = binaryEvent({ type: 'account.opened.v1', data: Buffer.from('{}') });
  const sent = ops.client.appendToStream(account('d'), bytes);
  assert.equal(await ops.outcome(sent), 'rejected');
});

test('a token with append removes no stream and changes no metadata; delete does', async () => {
  await using servers = await openServers();
  const shop = await servers.as({ name: 'shop', tenant: 'core', scopes: ['append', 'read'] });
  const cleaner = await servers.as({
    name: 'cleaner',
    tenant: 'core',
    scopes: ['append', 'delete'],
  });
  const ops = await servers.as({ name: 'ops', scopes: ['admin'] });
  const stream = 'shop.order.v1-core-a';
  const placed = jsonEvent({ type: 'order.placed.v1', data: {} });
  await shop.client.appendToStream(stream, placed);
  const removals = ({ client, outcome }: typeof shop, of: string) => [
    () => outcome(client.setStreamMetadata(of, { maxCount: 1 })),
    () => outcome(client.deleteStream(of)),
    () => outcome(client.tombstoneStream(of)),
  ];
  const outcomes = async (works: readonly (() => Promise<string>)[]) => {
    const found: string[] = [];
    for (const work of works) found.push(await work());
    return found;
  };
  const denied = ['denied', 'denied', 'denied'];
  assert.deepEqual(await outcomes(removals(shop, stream)), denied);
  assert.deepEqual(await outcomes(removals(cleaner, 'shop.order.v1-other-a')), denied);
  for (const system of ['$millrace-tokens', '$persistentSubscriptionConfig', '$$$millrace-audit']) {
    assert.deepEqual(await outcomes(removals(ops, system)), denied, system);
  }
  assert.deepEqual(await outcomes(removals(cleaner, stream)), ['accepted', 'accepted', 'accepted']);
});
