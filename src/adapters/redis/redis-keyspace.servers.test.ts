// What others see who read the same Redis without us: the keyspace, as it was specified.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Redis } from 'ioredis';
import { parseRedisKey, redisKeys } from '../../contracts/redis-keys.ts';
import { hasCode } from '../../foundation/error.ts';
import { documentsOf, type Documents } from '../../projections/documents.ts';
import { readModel } from '../../projections/read-model.ts';
import { startRedis } from '../../testing/servers/redis-server.ts';
import { redisReadModels } from './redis-read-models.ts';

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
const store = await redisReadModels(server.url);
const documents = documentsOf(store, currencies);
after(async () => {
  redis.disconnect();
  await store[Symbol.asyncDispose]();
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
  const own = await redisReadModels(redis, options);
  return {
    documents: documentsOf(own, currencies),
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  };
}

test('a document is JSON under its key, with its index, sets and sorted set beside it', async () => {
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

test('as a hash, a document has a field for each of its members', async () => {
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

test('a cached list is a list of ids with a time to live, and a write removes it', async () => {
  await using _ = await begin();
  await documents.list('core', { enabled: true }, async () => ['USD', 'ZAR']);
  const key = redisKeys.list('core', 'banking', 'currency', 1, { enabled: true });
  assert.deepEqual(await redis.lrange(key, 0, -1), ['USD', 'ZAR']);
  const left = await redis.pttl(key);
  assert.ok(left > 0 && left <= 60_000, String(left));
  await documents.put(from('USD', 0), dollar);
  assert.equal(await redis.exists(key), 0);
});

test('entries of cached lists that are over do not pile up', async () => {
  await using _ = await begin();
  const key = (at: number) => ({ tenant: 'core', hash: at.toString(16).padStart(32, '0') });
  const { generation } = await store.list(currencies, key(0));
  for (let at = 0; at < 700; at += 1) {
    await store.keepList(currencies, key(at), { ids: [], generation, ttlMs: 1 });
  }
  assert.ok((await redis.hlen(`${space}:meta:lists`)) < 300);
});

test('a batch of many documents is one call for each tenant', async () => {
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

test('another process that never saw the names of a document’s entries removes them all the same', async () => {
  await using _ = await begin();
  await documents.put(from('USD', 0), dollar);
  await using fresh = await redisReadModels(server.url);
  const bare = readModel<Currency>({ bc: 'banking', aggregate: 'currency', version: 1 });
  await documentsOf(fresh, bare).put(from('USD', 1), dollar);
  assert.deepEqual((await redis.keys('*')).toSorted(), [
    `${space}:USD`,
    `${space}:meta:fences`,
    `${space}:meta:generation`,
    `${space}:set:all`,
  ]);
});

test('a server that has forgotten the scripts is sent them again', async () => {
  await using _ = await begin();
  await documents.put(from('USD', 0), dollar);
  await redis.script('FLUSH');
  assert.equal(await documents.put(from('USD', 1), dollar), 'written');
  await redis.script('FLUSH');
  assert.equal((await documents.byRange('core', 'updated')).items.length, 1);
});

test('documents of some megabytes, and hashes of thousands of fields, are written', async () => {
  const large = readModel<object>({ bc: 'banking', aggregate: 'large', version: 1 });
  const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`f${at}`, at]));
  const text = { text: 'x'.repeat(1_000_000) };
  for (const shape of ['json', 'hash'] as const) {
    await using own = await redisReadModels(server.url, { documents: shape });
    const all = documentsOf(own, large);
    const ids = Array.from({ length: 9 }, (_, at) => `d${at}`);
    const sources = ids.map((id) => ({ ...from(id, 0), stream: `banking.large.v1-core-${id}` }));
    const changes = sources.map((source, at) => ({ ...source, document: at === 0 ? wide : text }));
    assert.deepEqual(new Set(await all.write(changes)), new Set(['written']));
    assert.deepEqual((await all.get('core', 'd0'))?.document, wide);
    assert.deepEqual((await all.get('core', 'd8'))?.document, text);
    while ((await own.clear(large, 100)) > 0);
  }
});

test('a client of your own may have a prefix, and stays open', async () => {
  await redis.flushall();
  const own = new Redis(server.url, { keyPrefix: 'shop:' });
  try {
    {
      await using prefixed = await redisReadModels(own);
      const inShop = documentsOf(prefixed, currencies);
      await inShop.put(from('USD', 0), dollar);
      await inShop.put(from('USD', 1), { ...dollar, code: 'new', enabled: false });
      assert.equal((await inShop.byIndex('core', 'code', 'new'))?.id, 'USD');
      assert.equal(await redis.exists(`shop:${space}:USD`), 1);
      assert.equal(await documents.get('core', 'USD'), undefined);
      assert.equal(await prefixed.clear(currencies, 10), 1);
      assert.equal(await prefixed.clear(currencies, 10), 0);
    }
    assert.deepEqual(await redis.keys('*'), [`shop:${space}:meta:generation`]);
    assert.equal(await own.ping(), 'PONG');
  } finally {
    own.disconnect();
  }
});

test('a Redis that forgets is told at the start, and claims no durability', async () => {
  await using own = await startRedis({
    appendOnly: 'everysec',
    settings: { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' },
  });
  await using safe = await startRedis({ appendOnly: 'always' });
  const said: unknown[] = [];
  const ignore = (): void => undefined;
  const warn = (fields: object, message: string): void => void said.push([message, fields]);
  const observer = { log: { debug: ignore, info: ignore, error: ignore, warn } };
  for (const { url, durable } of [
    { url: server.url, durable: false },
    { url: own.url, durable: true },
    { url: safe.url, durable: true },
  ]) {
    await using opened = await redisReadModels(url, { observer });
    assert.equal(opened.capabilities.durable, durable);
  }
  const message = 'Redis may lose documents that a checkpoint passed';
  assert.deepEqual(said, [
    [message, { settings: 'appendonly no' }],
    [message, { settings: 'appendfsync everysec, maxmemory-policy allkeys-lru' }],
  ]);
});

test('a document that was evicted is told, and not taken for one that never was', async () => {
  await using _ = await begin();
  await documents.put(from('USD', 0), dollar);
  await redis.del(`${space}:USD`);
  await assert.rejects(
    () => documents.get('core', 'USD'),
    (error) => hasCode(error, 'STORE_CORRUPT') && /noeviction/.test(error.message),
  );
});

test('what Redis refuses for good is told as such', async () => {
  await using _ = await begin();
  await redis.set(`${space}:set:all`, 'not a set');
  await assert.rejects(
    () => documents.put(from('USD', 0), dollar),
    (error) => hasCode(error, 'STORE_UNAVAILABLE') && !error.retryable,
  );
});
