// The adapter's connection: clusters without a node, TLS, passwords and unknown parameters.

import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { silentObserver, type Observer } from '../../src/foundation/observer.ts';
import { kurrentStoreOptions } from '../../src/server/kurrent/index.ts';
import { rejectsWith } from '../../src/testing/assertions.ts';
import { newEvent, newStream, storedIds } from '../../src/testing/conformance/store/fixture.ts';
import { reservePort } from '../../src/testing/servers/reserve-port.ts';
import {
  throwawayCertificate,
  type Certificate,
} from '../../src/testing/support/throwaway-certificate.ts';
import { serveEngine, serveMemory, type ServedMemory } from './client-cases.ts';

const timeout = 60_000;
const password = 'a@b:c/d%e';

let certificate: Certificate;
let guarded: ServedMemory;
let plain: ServedMemory;
before(async () => {
  certificate = throwawayCertificate();
  const { cert, key } = certificate;
  guarded = await serveMemory({
    tls: { cert, key },
    authenticate: (credentials) =>
      credentials?.kind === 'basic' && credentials.password === password
        ? { scopes: ['admin'] }
        : undefined,
  });
  plain = await serveMemory();
});
after(async () => {
  await guarded[Symbol.asyncDispose]();
  await plain[Symbol.asyncDispose]();
  certificate[Symbol.dispose]();
});

const urlWith = (parts: {
  host?: string;
  user?: string;
  port?: number;
  query?: string;
}): string => {
  const { host = 'localhost', user = `u:${encodeURIComponent(password)}@` } = parts;
  const { port = guarded.server.port } = parts;
  const { query = `tls=true&tlsCAFile=${certificate.authorityFile}` } = parts;
  return `kurrentdb://${user}${host}:${port}?${query}&discoveryInterval=1`;
};

test('a percent-encoded password works for appends and reads', { timeout }, async () => {
  await using db = await openKurrent(urlWith({}));
  const stream = newStream();
  const event = newEvent();
  await db.store.append(stream, [event]);
  assert.deepEqual(await storedIds(db.store, stream), [event.eventId]);
  assert.ok((await db.store.readAll({ limit: 1 }).toArray()).length === 1);
});

test(
  'opening names what is wrong with TLS or the password, and no retry is suggested',
  { timeout },
  async () => {
    for (const [parts, remedy] of [
      [{ user: 'u:wrong@' }, /rejected the user or the password/],
      [{ host: '127.0.0.1' }, /replace the IP address/],
      [{ query: 'tls=true' }, /tlsCAFile/],
      [{ port: plain.server.port, query: 'tls=true' }, /tls=false/],
    ] as const) {
      const error = await rejectsWith(() => openKurrent(urlWith(parts)), 'CONFIG_INVALID');
      assert.equal(error.retryable, false);
      assert.match(error.message, remedy);
    }
    const { message, retryable } = await rejectsWith(
      () => openKurrent(urlWith({ query: 'tls=false' })),
      'STORE_UNAVAILABLE',
    );
    assert.equal(retryable, true);
    assert.match(message, /tls=true/);
  },
);

test(
  'an unknown parameter prints nothing, not even with a wrong password',
  { timeout },
  async (context) => {
    const printed = warnings(context);
    const url = `${urlWith({ user: 'u:hunter2@' })}&tlsCaFil=/x`;
    const { message } = await rejectsWith(() => openKurrent(url), 'CONFIG_INVALID');
    assert.match(message, /did you mean 'tlsCAFile'/);
    await using db = await openKurrent(plain.url.replace(/^kurrentdb/, 'esdb'));
    await db.store.head();
    assert.deepEqual(printed(), []);
  },
);

test('a cluster that was away is used again by the same store', { timeout }, async () => {
  await using cluster = await startCluster();
  const { backing, url } = cluster;
  await using db = await openKurrent(url);
  const stream = newStream();
  const events = [newEvent(), newEvent()];
  await db.store.append(stream, events.slice(0, 1));
  await cluster.stop();
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const failed = () => db.store.append(stream, events.slice(1));
    assert.equal((await rejectsWith(failed, 'STORE_UNAVAILABLE')).retryable, true);
  }
  await cluster.start();
  await db.store.append(stream, events.slice(1));
  assert.equal((await backing.store.readStream(stream).toArray()).length, 2);
});

test('a consumer continues after the whole cluster was away', { timeout }, async ({ signal }) => {
  await using cluster = await startCluster();
  const { backing, url } = cluster;
  const away = Promise.withResolvers<void>();
  const warn = ({ err }: { readonly err?: unknown }): void => {
    if (/discover/i.test(String(err))) away.resolve();
  };
  const log = { warn } as unknown as NonNullable<Observer['log']>;
  await using db = await openKurrent(url, { observer: { ...silentObserver, log } });
  const stream = newStream();
  const events = [newEvent(), newEvent()];
  await backing.store.append(stream, events.slice(0, 1));
  const consumed: string[] = [];
  const restore = async (): Promise<void> => {
    await away.promise;
    await cluster.start();
    await backing.store.append(stream, events.slice(1));
  };
  for await (const { event, ack } of db.store.consume({ group: 'g', stream, signal })) {
    consumed.push(event.eventId);
    await ack();
    if (event.eventId === events[1]?.eventId) break;
    if (consumed.length > 1) continue;
    await cluster.stop();
    void restore();
  }
  assert.deepEqual(
    [...new Set(consumed)],
    events.map(({ eventId }) => eventId),
  );
});

/** Nodes that clients find by gossip, and that all stop and start together. */
async function startCluster() {
  const stack = new AsyncDisposableStack();
  const { host, port } = stack.use(await reservePort());
  const backing = stack.use(openMemory(kurrentStoreOptions));
  const serve = (): Promise<ServedMemory> =>
    serveEngine({ ...backing, async [Symbol.asyncDispose]() {} }, { host, port });
  let served = await serve();
  const stop = async (): Promise<void> => served[Symbol.asyncDispose]();
  stack.defer(() => stop());
  const query = 'tls=false&discoveryInterval=1&maxDiscoverAttempts=2';
  return {
    backing,
    url: `kurrentdb://${host}:${port},${host}:${port}?${query}`,
    stop,
    async start() {
      served = await serve();
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** What the process prints through the console. */
function warnings({ mock }: TestContext): () => readonly unknown[] {
  const warn = mock.method(console, 'warn', () => {});
  return () => warn.mock.calls.map((call) => call.arguments);
}
