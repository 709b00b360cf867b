import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { hasCode, type MillraceError } from '../../foundation/error.ts';
import { eventually, rejectsWith } from '../../testing/assertions.ts';
import { startRedis } from '../../testing/servers/redis-server.ts';
import { sharedRedis, sharedRedisCluster } from '../../testing/servers/shared-servers.ts';
import { openRedis, type RedisEngine } from './open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
const servers = { Redis: url, 'a Redis Cluster': clusterUrl };

const order = { bc: 'shop', aggregate: 'order', version: 1 };
/** One call of each role, with the prefix of its error codes. */
function callsOf(redis: RedisEngine): readonly (readonly [string, () => Promise<unknown>])[] {
  return [
    ['STORE', () => redis.readModels.find(order, 'core', { index: 'code', value: 'a' })],
    ['STORE', () => redis.sagas.list({})],
    ['STORE', () => redis.leases.list('sub:shop:orders-projection:v1')],
    ['BUS', () => redis.bus.publish({ subject: 'gbe.shop.orders', payload: {} })],
    ['TASKS', () => redis.tasks.counts()],
    ['STORE', () => redis.keys.get('shop:{core}:o-1:lock')],
    ['STORE', () => redis.breakers.list()],
    ['STORE', () => redis.mirror.publish([{ channel: 'events.a', text: '{}' }])],
    ['STORE', () => redis.queue.add(mails, [{ id: randomUUID(), name: 'send', data: {} }])],
  ];
}

const mails = `{${randomUUID()}}:mails`;
const options = { keyPrefix: `${randomUUID()}:` };
const sockets = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

test('all roles send their commands over one connection', async () => {
  await using server = await startRedis();
  const reader = new Redis(server.url);
  const connections = async () =>
    String(await reader.client('LIST'))
      .trim()
      .split('\n').length - 1;
  await using redis = await openRedis(server.url);
  assert.equal(await connections(), 1);
  for (const [, call] of callsOf(redis)) await call();
  assert.equal(await connections(), 1);
  reader.disconnect();
});

for (const [name, target] of Object.entries(servers)) {
  test(`in ${name} no role opens a connection for its commands`, async () => {
    await using redis = await openRedis(target, options);
    const before = sockets();
    for (const [, call] of callsOf(redis)) await call();
    assert.equal(sockets(), before);
  });

  test(`in ${name} closing the handle ends the roles first, while they can still send commands`, async () => {
    const redis = await openRedis(target, { ...options, keyPrefix: `${randomUUID()}:` });
    const { bus, keys, tasks, queue } = redis;
    const group = await bus.group({ group: 'g', subject: 'gbe.>' });
    const fetching = assert.rejects(group.fetch({ waitMs: 60_000 }));
    const [started, closing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let last: unknown;
    const working = queue.work(
      async () => {
        started.resolve();
        await closing.promise;
        last = await keys.get('shop:{core}:o-1:lock');
        return undefined;
      },
      { queues: [mails], concurrency: 1, signal: new AbortController().signal },
    );
    await queue.add(mails, [{ id: 'm-1', name: 'send', data: {} }]);
    await started.promise;
    last = 'not read';
    const closed = redis[Symbol.asyncDispose]();
    closing.resolve();
    await Promise.all([closed, working, fetching]);
    assert.equal(last, undefined);
    await rejectsWith(() => keys.get('a'), 'STORE_CLOSED');
    await rejectsWith(() => bus.groups(), 'BUS_CLOSED');
    await rejectsWith(() => tasks.counts(), 'TASKS_CLOSED');
    const isClosed = (error: unknown): boolean => hasCode(error, 'STORE_CLOSED');
    assert.throws(() => redis.leases, isClosed);
    await rejectsWith(() => queue.state(mails, 'm-1'), 'STORE_CLOSED');
  });

  test(`in ${name} closing one role leaves the others open`, async () => {
    await using redis = await openRedis(target, { ...options, keyPrefix: `${randomUUID()}:` });
    const { bus, tasks, keys, queue } = redis;
    for (const role of [bus, tasks, keys, queue]) await role[Symbol.asyncDispose]();
    await rejectsWith(() => bus.groups(), 'BUS_CLOSED');
    assert.deepEqual(await redis.leases.list('sub:shop:orders-projection:v1'), []);
  });
}

test('a role does nothing on the server before its first call', async () => {
  await using server = await startRedis();
  const reader = new Redis(server.url);
  await using redis = await openRedis(server.url);
  await reader.config('RESETSTAT');
  callsOf(redis);
  for (const role of Object.values(redis)) assert.ok(role);
  // A command that the handle sends last is executed last.
  await redis.keys.get('last');
  const stats = await reader.info('commandstats');
  const commands = new Set([...stats.matchAll(/^cmdstat_(\w+)/gm)].map(([, command]) => command));
  assert.deepEqual(commands, new Set(['config', 'eval', 'evalsha', 'get', 'pttl']));
  reader.disconnect();
});

test('an outage is logged once for all roles, and each role reports it with its own code', async () => {
  await using server = await startRedis({ appendOnly: 'always' });
  const logs: string[] = [];
  const log = (_fields: object, message: string): void => void logs.push(message);
  const observer = { log: { debug: log, info: log, warn: log, error: log } };
  await using redis = await openRedis(server.url, { observer });
  const calls = callsOf(redis);
  for (const [, call] of calls) await call();
  await server.kill();
  for (const [prefix, call] of calls) {
    await assert.rejects(call, (error) =>
      hasCode(error, `${prefix}_UNAVAILABLE` as MillraceError['code']),
    );
  }
  await server.start();
  await eventually('all roles work again', async () => {
    const results = await Promise.allSettled(calls.map(([, call]) => call()));
    return results.every(({ status }) => status === 'fulfilled');
  });
  assert.deepEqual(logs, ['Redis connection lost', 'Redis connection restored']);
});

test('rejects a client that is not connected', async () => {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  client.disconnect();
  await rejectsWith(() => openRedis(client), 'STORE_UNAVAILABLE');
});

test('roles with computed key names reject a client with a key prefix', async () => {
  const client = new Redis(url, { keyPrefix: 'shop:' });
  await using redis = await openRedis(client);
  const isInvalid = (error: unknown): boolean => hasCode(error, 'CONFIG_INVALID');
  for (const role of ['bus', 'tasks', 'queue'] as const) {
    assert.throws(() => redis[role], isInvalid);
  }
  assert.deepEqual(await redis.leases.list('sub:shop:orders-projection:v1'), []);
  client.disconnect();
});
