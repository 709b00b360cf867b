import assert from 'node:assert/strict';
import { test } from 'node:test';
import { converse } from './converse.ts';
import { runNodeScript } from './node-script.ts';
import {
  hostSharedServers,
  sharedNats,
  sharedPostgres,
  sharedRedisCluster,
} from './shared-servers.ts';
import {
  createServerPool,
  type SharedNats,
  type SharedPostgres,
  type SharedRedis,
} from './server-pool.ts';

interface TestFile {
  readonly postgres: SharedPostgres;
  readonly redis: SharedRedis;
  readonly nats: SharedNats;
}

const testFile = `
  const { sharedNats, sharedPostgres, sharedRedis } = await load('./shared-servers.ts');
  const [nats, postgres, redis] = await Promise.all([sharedNats(), sharedPostgres(), sharedRedis()]);
  console.log(JSON.stringify({ nats, postgres, redis }));`;

test('test files of one run share the servers but neither databases nor prefixes', async () => {
  const host = await hostSharedServers();
  const scripts = [runNodeScript(testFile), runNodeScript(testFile)];
  const files = (await Promise.all(scripts.map((script) => script.printed()))) as TestFile[];
  assert.deepEqual(await Promise.all(scripts.map((script) => script.ended)), [0, 0]);

  const [one, other] = files;
  assert.ok(one !== undefined && other !== undefined);
  assert.equal(new URL(one.postgres.url).port, new URL(other.postgres.url).port);
  assert.notEqual(one.postgres.url, other.postgres.url);
  assert.equal(one.redis.url, other.redis.url);
  assert.notEqual(one.redis.keyPrefix, other.redis.keyPrefix);
  assert.equal(one.nats.url, other.nats.url);
  assert.notEqual(one.nats.prefix, other.nats.prefix);

  const port = Number(new URL(one.redis.url).port);
  await converse(port, [{ send: 'PING\r\n', expect: /^\+PONG\r\n/ }]);
  await host[Symbol.asyncDispose]();
  await assert.rejects(converse(port, []), { code: 'ECONNREFUSED' });
});

test('without a host, the servers are shared within the process and end with it', async (t) => {
  const { MILLRACE_TEST_SERVERS: _host, ...env } = process.env;
  const twice = `
    const { sharedRedis } = await load('./shared-servers.ts');
    console.log(JSON.stringify(await Promise.all([sharedRedis(), sharedRedis()])));`;
  const script = runNodeScript(twice, env);
  const [one, other] = (await script.printed()) as SharedRedis[];
  assert.ok(one !== undefined && other !== undefined);
  assert.equal(one.url, other.url);
  assert.notEqual(one.keyPrefix, other.keyPrefix);
  assert.equal(await script.ended, 0);
  const port = Number(new URL(one.url).port);
  await t.waitFor(() => assert.rejects(converse(port, []), { code: 'ECONNREFUSED' }), {
    timeout: 60_000,
  });
});

test('the hosting process can also use the servers, including the cluster', async () => {
  const run = await hostSharedServers();
  const { nodes, urls, keyPrefix } = await sharedRedisCluster();
  assert.deepEqual(
    urls,
    nodes.map(({ host, port }) => `redis://${host}:${port}`),
  );
  assert.match(keyPrefix, /^t\w+:$/);
  await run[Symbol.asyncDispose]();
});

test('a wait for a shared server ends with its signal, before or while it starts', async () => {
  const host = await hostSharedServers();
  const stopping = new AbortController();
  const wait = assert.rejects(sharedPostgres({ signal: stopping.signal }), { code: 'ABORTED' });
  stopping.abort();
  await wait;
  await assert.rejects(sharedNats({ signal: stopping.signal }), { code: 'ABORTED' });
  await host[Symbol.asyncDispose]();
});

test('a disposed pool starts nothing', async () => {
  const pool = createServerPool();
  await pool[Symbol.asyncDispose]();
  await assert.rejects(pool.redis(), { code: 'SERVER_UNAVAILABLE' });
});
