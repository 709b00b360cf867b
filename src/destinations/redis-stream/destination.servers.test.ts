import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Redis } from 'ioredis';
import { redisKeys } from '../../contracts/redis-keys.ts';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { destinationConformance } from '../../testing/conformance/delivery/destination.ts';
import { startRedis } from '../../testing/servers/redis-server.ts';
import { sharedRedis, sharedRedisCluster } from '../../testing/servers/shared-servers.ts';
import { redisStreamDestination } from './destination.ts';

const server = await startRedis();
const destination = await redisStreamDestination(server.url, { stream: 'payments' });
const reader = new Redis(server.url);
// The client reconnects by itself and may emit errors.
reader.on('error', () => undefined);
after(async () => {
  await destination[Symbol.asyncDispose]();
  reader.disconnect();
  await server[Symbol.asyncDispose]();
});

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'redis:payments',
  eventType: 'payment.completed.v1',
  payload: { text: 'hello' },
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
  tenantId: 'core',
};

interface Entry {
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

async function entriesOf(client: Redis, stream: string): Promise<readonly Entry[]> {
  const found = await client.xrange(stream, '-', '+');
  return found.map(([id, flat]) => {
    const pairs = flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : []));
    return { id, fields: Object.fromEntries(pairs) as Record<string, string> };
  });
}

for (const { name, skip, run } of destinationConformance({
  destination,
  dedupes: true,
  async received() {
    return (await entriesOf(reader, 'payments')).map(({ fields }) => ({
      idempotencyKey: fields['id'] ?? '',
      text: String((JSON.parse(fields['payload'] ?? '{}') as { text?: string }).text),
    }));
  },
  away: async () => {
    await server.stop();
    return () => server.start();
  },
  silent: async () => {
    server.pause();
    return async () => server.resume();
  },
})) {
  test(`Redis stream: ${name}`, { skip: skip ?? false }, run);
}

test('a repeated message returns the entry of the first one until its key expires', async () => {
  const { url, keyPrefix } = await sharedRedis();
  const stream = `${keyPrefix}once`;
  await using send = await redisStreamDestination(url, { stream, dedupeMs: 60_000 });
  const client = new Redis(url);
  const { deliver } = createDelivery({ destinations: { redis: send } });
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => deliver(message)));
  const [entry, ...others] = await entriesOf(client, stream);
  assert.deepEqual(others, []);
  for (const outcome of outcomes) assert.deepEqual(outcome, { kind: 'sent', receipt: entry?.id });
  assert.deepEqual(entry?.fields, {
    id: 'e-1',
    type: 'payment.completed.v1',
    stream: 'paymenthub.payment.v1-core-1',
    payload: '{"text":"hello"}',
    tenantId: 'core',
  });
  const [key = ''] = await client.keys(`*${stream}*:dedupe:e-1`);
  const ttlMs = await client.pttl(key);
  assert.ok(ttlMs > 0 && ttlMs <= 60_000);
  await client.del(key);
  await deliver(message);
  assert.equal((await entriesOf(client, stream)).length, 2);
  client.disconnect();
});

test('in a cluster the dedupe key shares the slot of its stream, with and without a hash tag', async () => {
  const { nodes, keyPrefix } = await sharedRedisCluster();
  const url = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
  for (const stream of [`${keyPrefix}plain`, `${keyPrefix}{core}:tagged`]) {
    await using send = await redisStreamDestination(url, { stream: () => stream });
    const { deliver } = createDelivery({ destinations: { redis: send } });
    const [first, second] = [await deliver(message), await deliver(message)];
    assert.equal(first.kind, 'sent', JSON.stringify(first));
    assert.deepEqual(second, first);
  }
});

test('retries a message whose stream key has another type', async () => {
  const { url, keyPrefix } = await sharedRedis();
  const client = new Redis(url);
  await client.set(`${keyPrefix}text`, 'x');
  await using send = await redisStreamDestination(url, { stream: `${keyPrefix}text` });
  const { deliver } = createDelivery({ destinations: { redis: send } });
  const outcome = await deliver(message);
  assert.ok(outcome.kind === 'retry' && /WRONGTYPE/.test(outcome.error));
  assert.equal(await client.keys(`*${keyPrefix}text*:dedupe:*`).then((keys) => keys.length), 0);
  client.disconnect();
});

test('a message chooses no key of Millrace, and none that the function does not return', async () => {
  // Not the shared server: other test files write to these keys.
  const { url } = server;
  const client = new Redis(url);
  await using computed = await redisStreamDestination(url, {
    stream: ({ eventType }) => eventType,
  });
  await using fixed = await redisStreamDestination(url, { stream: 'own:fixed' });
  const { deliver } = createDelivery({ destinations: { computed, fixed } });
  const hostile = [
    '',
    'gbe:notify:topic:news',
    'millrace:breakers',
    'millrace.bus:{bus}:streams',
    'bull:integration:slack:wait',
    'app:{core}:banking:account:v1:a-1',
    'mq:{core}:shop:order:v1:orders',
    redisKeys.checkpoint('sub:shop:orders:v1'),
    redisKeys.checkpointChanges('sub:shop:orders:v1'),
    redisKeys.lease('sub:shop:orders:v1', 'shards'),
    redisKeys.commandKey('k-1'),
    redisKeys.workflows(),
    redisKeys.readModels(),
  ];
  for (const [at, eventType] of hostile.entries()) {
    const event = { ...message, eventType, sourceEventId: `e-${at}` };
    const outcome = await deliver({ ...event, integrationType: 'computed' });
    assert.equal(outcome.kind, 'dead', eventType);
    if (eventType !== '') assert.equal(await client.exists(eventType), 0, eventType);
    // The key is that of the configuration, whatever the message contains.
    const contact = { stream: eventType, topic: eventType, webhookUrl: eventType };
    const sent = await deliver({ ...event, integrationType: 'fixed', payload: contact });
    assert.equal(sent.kind, 'sent');
  }
  assert.equal(await client.xlen('own:fixed'), hostile.length);
  const own = { ...message, integrationType: 'computed', eventType: 'own:computed' };
  assert.equal((await deliver(own)).kind, 'sent');
  client.disconnect();
});

test('trims a stream to about its maximum length', async () => {
  const { url, keyPrefix } = await sharedRedis();
  const stream = `${keyPrefix}short`;
  const client = new Redis(url);
  await using send = await redisStreamDestination(url, { stream, entriesMax: 100 });
  const { deliver } = createDelivery({ destinations: { redis: send } });
  for (let index = 0; index < 500; index += 1) {
    await deliver({ ...message, sourceEventId: `e-${index}` });
  }
  const length = await client.xlen(stream);
  assert.ok(length >= 100 && length < 500, String(length));
  client.disconnect();
});
