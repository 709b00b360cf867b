// Tokens as the credentials of clients: who is let in, to what, and for how long.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTokens, type NewToken, type Tokens } from '../../src/platform/index.ts';
import { tokensStream } from '../../src/platform/tokens/token-book.ts';
import { authenticateByTokens, kurrentStoreOptions } from '../../src/server/kurrent/index.ts';
import { serveStore, type ClientCases, type ServedMemory } from './client-cases.ts';
import { memoryEventStore } from '../../src/engines/memory/index.ts';
import { fakeClock, type FakeClock } from '../../src/testing/index.ts';
import { followed } from './follow.ts';
import {
  collect,
  event,
  idsOf,
  refused,
  unique,
  type ClientKind,
  type OfficialClient,
} from './official-clients.ts';
import { throwawayCertificate, type Certificate } from './throwaway-certificate.ts';

interface Guarded extends AsyncDisposable {
  readonly served: ServedMemory;
  readonly tokens: Tokens;
  /** Of the tokens. */
  readonly clock: FakeClock;
  /** A client with a token of its own. */
  as(wanted: Partial<NewToken>): Promise<OfficialClient & { readonly tokenName: string }>;
  with(credentials: string): OfficialClient;
}

export const tokenCases: ClientCases = ({ kind }) => {
  const home = useGuarded(kind);
  const own = (tenant = 'core'): string => `banking.account.v1-${tenant}-${unique('a')}`;
  const denied = (work: () => Promise<unknown>) => refused('access-denied', work);

  test('the name of a token and its secret let in, and so do its id and its secret', async () => {
    const { token, secret } = await home().tokens.create({ name: unique('t'), scopes: ['admin'] });
    for (const user of [token.name, token.id]) {
      await using client = home().with(`${user}:${secret}@`);
      const stream = unique();
      const sent = event();
      await client.append(stream, sent);
      assert.deepEqual(idsOf(await collect(client.api.readStream(stream))), [sent.id]);
    }
  });

  test('without credentials, with a wrong secret or under a wrong name nothing is done', async () => {
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

  test('a token that expires ends its subscriptions, and is refused from then on', async () => {
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

  test('who is revoked while connected loses its subscription, and its next call is refused', async () => {
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

  test('a consumer of a persistent subscription that is revoked is let go', async () => {
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

  test('scopes: who reads does not write, who appends does not read', async () => {
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

  test("a tenant's token reads, appends and follows streams of its tenant only", async () => {
    await using client = await home().as({ scopes: ['read', 'append'], tenant: 'core' });
    await using admin = await home().as({ scopes: ['admin'] });
    const [mine, theirs, nobodys] = [own(), own('other'), unique()];
    await client.append(mine, event());
    await admin.append(theirs, event());
    await admin.append(nobodys, event());
    assert.equal((await collect(client.api.readStream(mine))).length, 1);
    for (const stream of [theirs, nobodys, `$$${theirs}`]) {
      await denied(() => collect(client.api.readStream(stream)));
      await denied(() => client.append(stream, event()));
      const subscription = followed(client.api.subscribeToStream(stream));
      assert.equal(((await subscription.failed()) as { type: string }).type, 'access-denied');
    }
    await denied(() => client.api.deleteStream(theirs));
    await denied(() => client.api.tombstoneStream(theirs));
    if (kind.hasMultiStream) {
      await refused('access-denied', () =>
        client.api.multiStreamAppend([
          { streamName: mine, expectedState: 'any', events: [event()] },
          { streamName: theirs, expectedState: 'any', events: [event()] },
        ]),
      );
    }
  });

  test("all, by category and by type a tenant's token sees its own events alone", async () => {
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

  test('a link of its own does not lead a tenant to events of another', async () => {
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

  test('streams of the system need admin, and so does the administration of groups', async () => {
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
      await refused('stream-not-found', () => collect(client.api.readStream('$et-$token-created')));
    }
    await admin.append('$settings', event());
    const records = await collect(admin.api.readStream(tokensStream));
    assert.ok(records.every(({ event: each }) => each?.type.startsWith('$token-')));
    await admin.api.createPersistentSubscriptionToStream(stream, 'g', groupSettings);
    const mine = own();
    await tenantAdmin.api.createPersistentSubscriptionToStream(mine, 'g', groupSettings);
  });

  test('a group over all events, the records of tokens among them, is for admins only', async () => {
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

  test('where nobody is asked who he is, nobody may write a token for later', async () => {
    await using open = await serveStore(memoryEventStore(kurrentStoreOptions));
    await using client = kind.connect(open.url);
    await denied(() => client.append(tokensStream, event({ type: '$token-created' })));
    await denied(() => client.api.setStreamMetadata(tokensStream, { truncateBefore: 1 }));
    await denied(() => client.api.deleteStream(tokensStream));
    await client.append('$settings', event());
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

/** One server for the suite, with a store and tokens of its own. */
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
  // Official clients keep their credentials to themselves where there is no TLS.
  const tls: Certificate = stack.use(throwawayCertificate());
  const store = memoryEventStore(kurrentStoreOptions);
  const clock = fakeClock();
  const tokens = stack.use(await openTokens(store, { clock }));
  const served = stack.use(
    await serveStore(store, {
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
