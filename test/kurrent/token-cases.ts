// Tokens as credentials of clients: access, scopes, tenants and expiry.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTokens, type NewToken, type Tokens } from '../../src/platform/index.ts';
import { tokensStream } from '../../src/platform/tokens/token-book.ts';
import { authenticateByTokens, kurrentStoreOptions } from '../../src/server/kurrent/index.ts';
import { serveEngine, type ClientCases, type ServedMemory } from './client-cases.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { fakeClock, type FakeClock } from '../../src/testing/index.ts';
import { followed } from './follow.ts';
import {
  collect,
  event,
  idsOf,
  rejectsWith,
  unique,
  type ClientKind,
  type OfficialClient,
} from './official-clients.ts';
import {
  throwawayCertificate,
  type Certificate,
} from '../../src/testing/support/throwaway-certificate.ts';

interface Guarded extends AsyncDisposable {
  readonly served: ServedMemory;
  readonly tokens: Tokens;
  /** The store of the tokens. */
  readonly clock: FakeClock;
  /** A client with a new token. */
  as(wanted: Partial<NewToken>): Promise<OfficialClient & { readonly tokenName: string }>;
  with(credentials: string): OfficialClient;
}

export const tokenCases: ClientCases = ({ kind }) => {
  const home = useGuarded(kind);
  const own = (tenant = 'core'): string => `banking.account.v1-${tenant}-${unique('a')}`;
  const denied = (work: () => Promise<unknown>) => rejectsWith('access-denied', work);

  test('accepts the name or id of a token with its secret', async () => {
    const { token, secret } = await home().tokens.create({ name: unique('t'), scopes: ['admin'] });
    for (const user of [token.name, token.id]) {
      await using client = home().with(`${user}:${secret}@`);
      const stream = unique();
      const sent = event();
      await client.append(stream, sent);
      assert.deepEqual(idsOf(await collect(client.api.readStream(stream))), [sent.id]);
    }
  });

  test('missing credentials, a wrong secret and a wrong name are rejected', async () => {
    const { token, secret } = await home().tokens.create({ name: unique('t'), scopes: ['admin'] });
    const wrong = `${secret.slice(0, -2)}${secret.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const credentials of ['', `${token.name}:${wrong}@`, `other:${secret}@`]) {
      await using client = home().with(credentials);
      const stream = unique();
      await denied(() => client.append(stream, event()));
      await denied(() => collect(client.api.readStream(stream)));
      await denied(() => collect(client.api.readAll({ maxCount: 1 })));
      await denied(() => client.api.deleteStream(stream));
      await followed(client.api.subscribeToAll()).failed();
      await denied(() => client.api.listAllPersistentSubscriptions());
      assert.equal(await home().served.store.streamInfo(stream), undefined);
    }
  });

  test('an expired token ends its subscriptions and is rejected', async () => {
    const { clock } = home();
    const expiresAt = new Date(clock.now() + 60_000).toISOString();
    await using client = await home().as({ scopes: ['admin'], expiresAt });
    await client.append(unique(), event());
    const subscription = followed(client.api.subscribeToAll());
    await subscription.count(1);
    await clock.advance(60_000);
    assert.equal(((await subscription.failed()) as { type: string }).type, 'access-denied');
    await denied(() => client.append(unique(), event()));
  });

  test('revoking a token ends its subscription, and its next call is rejected', async () => {
    await using client = await home().as({ scopes: ['admin'] });
    const stream = unique();
    await client.append(stream, event());
    const toStream = followed(client.api.subscribeToStream(stream));
    const toAll = followed(client.api.subscribeToAll());
    await toStream.count(1);
    await toAll.count(1);
    await home().tokens.revoke(client.tokenName);
    for (const subscription of [toStream, toAll]) {
      assert.equal(((await subscription.failed()) as { type: string }).type, 'access-denied');
    }
    await denied(() => client.append(stream, event()));
    await denied(() => collect(client.api.readStream(stream)));
    assert.equal((await home().served.store.streamInfo(stream))?.revision, 0);
  });

  test('revoking a token disconnects its consumer of a persistent subscription', async () => {
    await using admin = await home().as({ scopes: ['admin'] });
    await using reader = await home().as({ scopes: ['read'] });
    const stream = unique();
    await admin.api.createPersistentSubscriptionToStream(stream, 'g', groupSettings);
    await admin.append(stream, event());
    const consumer = followed(reader.api.subscribeToPersistentSubscriptionToStream(stream, 'g'));
    await consumer.count(1);
    await home().tokens.revoke(reader.tokenName);
    assert.equal(((await consumer.failed()) as { type: string }).type, 'access-denied');
  });

  test('the scope read does not allow writes, and append does not allow reads', async () => {
    await using reader = await home().as({ scopes: ['read'] });
    await using writer = await home().as({ scopes: ['append'] });
    const stream = unique();
    await denied(() => reader.append(stream, event()));
    await writer.append(stream, event());
    await denied(() => reader.api.deleteStream(stream));
    await denied(() => collect(writer.api.readStream(stream)));
    await denied(() => collect(writer.api.readAll({ maxCount: 1 })));
    assert.equal((await collect(reader.api.readStream(stream))).length, 1);
  });

  test('a token of a tenant reads, appends and follows only streams of its tenant', async () => {
    await using client = await home().as({ scopes: ['read', 'append'], tenant: 'core' });
    await using admin = await home().as({ scopes: ['admin'] });
    const [mine, theirs, unowned] = [own(), own('other'), unique()];
    await client.append(mine, event());
    await admin.append(theirs, event());
    await admin.append(unowned, event());
    assert.equal((await collect(client.api.readStream(mine))).length, 1);
    for (const stream of [theirs, unowned, `$$${theirs}`]) {
      await denied(() => collect(client.api.readStream(stream)));
      await denied(() => client.append(stream, event()));
      const subscription = followed(client.api.subscribeToStream(stream));
      assert.equal(((await subscription.failed()) as { type: string }).type, 'access-denied');
    }
    await denied(() => client.api.deleteStream(theirs));
    await denied(() => client.api.tombstoneStream(theirs));
    if (kind.hasMultiStream) {
      await rejectsWith('access-denied', () =>
        client.api.multiStreamAppend([
          { streamName: mine, expectedState: 'any', events: [event()] },
          { streamName: theirs, expectedState: 'any', events: [event()] },
        ]),
      );
    }
  });

  test('a token of a tenant sees only its events in $all, categories and types', async () => {
    await using client = await home().as({ scopes: ['read', 'append'], tenant: 'core' });
    await using admin = await home().as({ scopes: ['admin'] });
    const type = unique('Type');
    const [first, second] = [event({ type }), event({ type })];
    await client.append(own(), first);
    await admin.append(own('other'), event({ type }));
    await admin.append(unique(), event({ type }));
    await client.append(own(), second);
    const seen = [first.id, second.id];
    const all = await collect(client.api.readAll());
    assert.ok(
      all.every(({ event: each }) => each?.streamId.startsWith('banking.account.v1-core-')),
    );
    const links = { resolveLinkTos: true };
    assert.deepEqual(idsOf(await collect(client.api.readStream(`$et-${type}`, links))), seen);
    const category = await collect(client.api.readStream('$ce-banking.account.v1', links));
    assert.deepEqual(idsOf(category).slice(-2), seen);
    const followedAll = followed(client.api.subscribeToAll());
    const ids = idsOf(await followedAll.count(all.length));
    assert.deepEqual(ids, idsOf(all));
    await followedAll[Symbol.asyncDispose]();
  });

  test('a link of a tenant does not resolve to events of another tenant', async () => {
    await using client = await home().as({ scopes: ['read', 'append'], tenant: 'core' });
    await using admin = await home().as({ scopes: ['admin'] });
    const [mine, theirs] = [own(), own('other')];
    await admin.append(theirs, event());
    for (const target of [theirs, tokensStream]) {
      const data = Buffer.from(`0@${target}`);
      const contentType = 'application/octet-stream';
      await client.append(mine, { ...event(), contentType, type: '$>', data });
    }
    const read = await collect(client.api.readStream(mine, { resolveLinkTos: true }));
    assert.deepEqual(
      read.map(({ event: target }) => target),
      [undefined, undefined],
    );
  });

  test('system streams and the administration of groups need admin', async () => {
    await using user = await home().as({ scopes: ['read', 'append'] });
    await using tenantAdmin = await home().as({ scopes: ['admin'], tenant: 'core' });
    await using admin = await home().as({ scopes: ['admin'] });
    const stream = unique();
    for (const client of [user, tenantAdmin]) {
      await denied(() => collect(client.api.readStream(tokensStream)));
      await denied(() => client.append('$settings', event()));
      await denied(() => client.append(tokensStream, event()));
      await denied(() => client.api.setStreamMetadata(tokensStream, { truncateBefore: 9 }));
      await denied(() =>
        client.api.createPersistentSubscriptionToStream(stream, 'g', groupSettings),
      );
      await denied(() => client.api.listAllPersistentSubscriptions());
      const types = new Set((await collect(client.api.readAll())).map(({ event: e }) => e?.type));
      assert.equal(types.has('$token-created'), false);
      await rejectsWith('stream-not-found', () =>
        collect(client.api.readStream('$et-$token-created')),
      );
    }
    await admin.append('$settings', event());
    const records = await collect(admin.api.readStream(tokensStream));
    assert.ok(records.every(({ event: each }) => each?.type.startsWith('$token-')));
    await admin.api.createPersistentSubscriptionToStream(stream, 'g', groupSettings);
    const mine = own();
    await tenantAdmin.api.createPersistentSubscriptionToStream(mine, 'g', groupSettings);
  });

  test('a group of $all, which includes token records, needs admin', async () => {
    await using admin = await home().as({ scopes: ['admin'] });
    await using user = await home().as({ scopes: ['read', 'append'] });
    const group = unique('g');
    await admin.api.createPersistentSubscriptionToAll(group, {
      ...groupSettings,
      startFrom: 'start',
    });
    const consumer = followed(user.api.subscribeToPersistentSubscriptionToAll(group));
    assert.equal(((await consumer.failed()) as { type: string }).type, 'access-denied');
    await using allowed = followed(admin.api.subscribeToPersistentSubscriptionToAll(group));
    await allowed.count(1);
  });

  test('without authentication no client can write a system stream', async () => {
    await using open = await serveEngine(openMemory(kurrentStoreOptions));
    await using client = kind.connect(open.url);
    await denied(() => client.append(tokensStream, event({ type: '$token-created' })));
    await denied(() => client.api.setStreamMetadata(tokensStream, { truncateBefore: 1 }));
    await denied(() => client.api.deleteStream(tokensStream));
    await denied(() => client.append('$settings', event()));
  });
};

const groupSettings = {
  startFrom: 'start',
  resolveLinkTos: false,
  extraStatistics: false,
  messageTimeout: 30_000,
  maxRetryCount: 10,
  checkPointAfter: 1_000,
  checkPointLowerBound: 1,
  checkPointUpperBound: 10,
  maxSubscriberCount: 'unbounded',
  liveBufferSize: 500,
  readBatchSize: 20,
  historyBufferSize: 500,
  consumerStrategyName: 'RoundRobin',
} as const;

/** One server for the suite, with a separate store and tokens. */
function useGuarded(kind: ClientKind): () => Guarded {
  let guarded: Guarded | undefined;
  before(async () => {
    guarded = await guard(kind);
  });
  after(() => guarded?.[Symbol.asyncDispose]());
  return () => {
    assert.ok(guarded);
    return guarded;
  };
}

async function guard(kind: ClientKind): Promise<Guarded> {
  const stack = new AsyncDisposableStack();
  // Official clients send credentials only over TLS.
  const tls: Certificate = stack.use(throwawayCertificate());
  const db = openMemory(kurrentStoreOptions);
  const clock = fakeClock();
  const tokens = stack.use(await openTokens(db.store, { clock }));
  const served = stack.use(
    await serveEngine(db, {
      tls,
      authenticate: authenticateByTokens(tokens),
      tenants: tokens.tenants,
    }),
  );
  const connect = (credentials: string): OfficialClient =>
    kind.connect(
      `${served.url.replace('127.0.0.1', 'localhost').replace('://', `://${credentials}`)}&tlsCAFile=${tls.authorityFile}`,
    );
  return {
    served,
    tokens,
    clock,
    with: connect,
    async as(wanted) {
      const tokenName = unique('t');
      const { secret } = await tokens.create({ name: tokenName, scopes: ['read'], ...wanted });
      return { ...connect(`${tokenName}:${secret}@`), tokenName };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
