// The specified keyspace, as other programs see it that read the same Redis.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Redis } from 'ioredis';
import { parseRedisKey, redisKeys } from '../../../contracts/redis-keys.ts';
import { hasCode } from '../../../foundation/error.ts';
import { documentsOf, type Documents } from '../../../projections/documents.ts';
import { readModel } from '../../../projections/read-model.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { openRedis } from '../open-redis.ts';

interface Currency {
  readonly code: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly updated: number;
}

const currencies = readModel<Currency>({
  bc: 'banking',
  aggregate: 'currency',
  version: 1,
  indexes: { code: ({ code }) => code },
  sets: { enabled: ({ enabled }) => enabled },
  ranges: { updated: ({ updated }) => updated },
  listTtlMs: 60_000,
});
const dollar: Currency = { code: 'usd', name: 'Dollar', enabled: true, updated: 1_759_226_400_123 };
const space = 'app:{core}:banking:currency:v1';

const server = await startRedis();
const redis = new Redis(server.url);
const handle = await openRedis(server.url);
const store = handle.readModels;
const documents = documentsOf(store, currencies);
after(async () => {
  redis.disconnect();
  await handle[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const from = (id: string, revision: number, tenant = 'core') => ({
  tenant,
  id,
  stream: `banking.currency.v1-${tenant}-${id}`,
  revision,
});

async function begin(
  options: { readonly documents: 'json' | 'hash' } = { documents: 'json' },
): Promise<AsyncDisposable & { readonly documents: Documents<Currency> }> {
  await redis.flushall();
  const own = await openRedis(redis, options);
  return {
    documents: documentsOf(own.readModels, currencies),
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  };
}

test('stores a document as JSON, with its index, sets and sorted set', async () => {
  await using _ = await begin();
  await documents.put(from('USD', 0), dollar);
  const zar = { ...dollar, code: 'zar', name: 'Rand', enabled: false };
  await documents.put(from('ZAR', 0), zar);
  assert.deepEqual(JSON.parse((await redis.get(`${space}:USD`)) ?? ''), dollar);
  assert.deepEqual(await redis.hgetall(`${space}:index:by-code`), { usd: 'USD', zar: 'ZAR' });
  assert.deepEqual((await redis.smembers(`${space}:set:all`)).toSorted(), ['USD', 'ZAR']);
  assert.deepEqual(await redis.smembers(`${space}:set:enabled`), ['USD']);
  assert.equal(await redis.zscore(`${space}:zset:by-updated`, 'USD'), '1759226400123');
  assert.equal(await redis.ttl(`${space}:USD`), -1);
  for (const key of await redis.keys('*')) {
    const parsed = parseRedisKey(key);
    assert.ok('tenant' in parsed && parsed.tenant === 'core', key);
  }
});

test('stores a document as a hash with a field for each member', async () => {
  await using own = await begin({ documents: 'hash' });
  await own.documents.put(from('USD', 0), dollar);
  const key = redisKeys.hash('core', 'banking', 'currency', 1, 'USD');
  assert.equal(key, `${space}:h:USD`);
  assert.equal(await redis.hget(key, 'name'), '"Dollar"');
  assert.equal(await redis.hget(key, 'updated'), '1759226400123');
  assert.equal(await redis.exists(`${space}:USD`), 0);
  const { name: _name, ...nameless } = dollar;
  await own.documents.put(from('USD', 1), nameless as Currency);
  assert.equal(await redis.hexists(key, 'name'), 0);
});

test('stores a cached list of ids with a time to live, and a write removes it', async () => {
  await using _ = await begin();
  await documents.list('core', { enabled: true }, async () => ['USD', 'ZAR']);
  const key = redisKeys.list('core', 'banking', 'currency', 1, { enabled: true });
  assert.deepEqual(await redis.lrange(key, 0, -1), ['USD', 'ZAR']);
  const left = await redis.pttl(key);
  assert.ok(left > 0 && left <= 60_000, String(left));
  await documents.put(from('USD', 0), dollar);
  assert.equal(await redis.exists(key), 0);
});

test('removes the entries of expired cached lists', async () => {
  await using _ = await begin();
  const key = (at: number) => ({ tenant: 'core', hash: at.toString(16).padStart(32, '0') });
  const { generation } = await store.list(currencies, key(0));
  for (let at = 0; at < 700; at += 1) {
    await store.keepList(currencies, key(at), { ids: [], generation, ttlMs: 1 });
  }
  assert.ok((await redis.hlen(`${space}:meta:lists`)) < 300);
});

test('writes a batch of many documents with one call for each tenant', async () => {
  await using _ = await begin();
  const write = (revision: number) =>
    documents.write(
      ['core', 'demo'].flatMap((tenant) =>
        Array.from({ length: 200 }, (__, at) => ({
          ...from(`c${at}`, revision, tenant),
          document: { ...dollar, code: `code-${at}`, updated: revision },
        })),
      ),
    );
  await write(0);
  await redis.config('RESETSTAT');
  const outcomes = await write(1);
  assert.deepEqual([outcomes.length, new Set(outcomes)], [400, new Set(['written'])]);
  const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1];
  assert.equal(calls, '2');
});

test('a process that does not know the names of old entries removes them', async () => {
  await using _ = await begin();
  await documents.put(from('USD', 0), dollar);
  await using fresh = await openRedis(server.url);
  const bare = readModel<Currency>({ bc: 'banking', aggregate: 'currency', version: 1 });
  await documentsOf(fresh.readModels, bare).put(from('USD', 1), dollar);
  assert.deepEqual((await redis.keys('*')).toSorted(), [
    `${space}:USD`,
    `${space}:meta:fences`,
    `${space}:meta:generation`,
    `${space}:set:all`,
  ]);
});

test('sends scripts again after the server has lost them', async () => {
  await using _ = await begin();
  await documents.put(from('USD', 0), dollar);
  await redis.script('FLUSH');
  assert.equal(await documents.put(from('USD', 1), dollar), 'written');
  await redis.script('FLUSH');
  assert.equal((await documents.byRange('core', 'updated')).items.length, 1);
});

test('writes documents of several megabytes and hashes of thousands of fields', async () => {
  const large = readModel<object>({ bc: 'banking', aggregate: 'large', version: 1 });
  const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`f${at}`, at]));
  const text = { text: 'x'.repeat(1_000_000) };
  for (const shape of ['json', 'hash'] as const) {
    await using own = await openRedis(server.url, { documents: shape });
    const all = documentsOf(own.readModels, large);
    const ids = Array.from({ length: 9 }, (_, at) => `d${at}`);
    const sources = ids.map((id) => ({ ...from(id, 0), stream: `banking.large.v1-core-${id}` }));
    const changes = sources.map((source, at) => ({ ...source, document: at === 0 ? wide : text }));
    assert.deepEqual(new Set(await all.write(changes)), new Set(['written']));
    assert.deepEqual((await all.get('core', 'd0'))?.document, wide);
    assert.deepEqual((await all.get('core', 'd8'))?.document, text);
    while ((await own.readModels.clear(large, 100)) > 0);
  }
});

test('accepts a client with a key prefix, and leaves it open', async () => {
  await redis.flushall();
  const own = new Redis(server.url, { keyPrefix: 'shop:' });
  try {
    {
      await using prefixed = await openRedis(own);
      const inShop = documentsOf(prefixed.readModels, currencies);
      await inShop.put(from('USD', 0), dollar);
      await inShop.put(from('USD', 1), { ...dollar, code: 'new', enabled: false });
      assert.equal((await inShop.byIndex('core', 'code', 'new'))?.id, 'USD');
      assert.equal(await redis.exists(`shop:${space}:USD`), 1);
      assert.equal(await documents.get('core', 'USD'), undefined);
      assert.equal(await prefixed.readModels.clear(currencies, 10), 1);
      assert.equal(await prefixed.readModels.clear(currencies, 10), 0);
    }
    assert.deepEqual(await redis.keys('*'), []);
    assert.equal(await own.ping(), 'PONG');
  } finally {
    own.disconnect();
  }
});

test('warns of a Redis that may lose data, and reports it as not durable', async () => {
  await using own = await startRedis({
    appendOnly: 'everysec',
    settings: { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' },
  });
  await using safe = await startRedis({ appendOnly: 'always' });
  const warnings: unknown[] = [];
  const ignore = (): void => undefined;
  const warn = (fields: object, message: string): void => void warnings.push([message, fields]);
  const observer = { log: { debug: ignore, info: ignore, error: ignore, warn } };
  for (const { url, durable } of [
    { url: server.url, durable: false },
    { url: own.url, durable: true },
    { url: safe.url, durable: true },
  ]) {
    await using opened = await openRedis(url, { observer });
    assert.equal(opened.readModels.capabilities.durable, durable);
  }
  const message = 'Redis may lose documents of events that a checkpoint has passed';
  assert.deepEqual(warnings, [
    [message, { settings: 'appendonly no' }],
    [message, { settings: 'appendfsync everysec, maxmemory-policy allkeys-lru' }],
  ]);
});

test('reports an evicted document instead of treating it as missing', async () => {
  await using _ = await begin();
  await documents.put(from('USD', 0), dollar);
  await redis.del(`${space}:USD`);
  await assert.rejects(
    () => documents.get('core', 'USD'),
    (error) => hasCode(error, 'STORE_CORRUPT') && /noeviction/.test(error.message),
  );
});

test('reports a permanent error of Redis as not retryable', async () => {
  await using _ = await begin();
  await redis.set(`${space}:set:all`, 'not a set');
  await assert.rejects(
    () => documents.put(from('USD', 0), dollar),
    (error) => hasCode(error, 'STORE_UNAVAILABLE') && !error.retryable,
  );
});
