import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { createLiveMirror } from '../../projections/live-mirror.ts';
import { newEvent } from '../../testing/conformance/store/fixture.ts';
import { startRedis } from '../../testing/servers/redis-server.ts';
import { sharedRedisCluster } from '../../testing/servers/shared-servers.ts';
import { openMemory } from '../memory/open-memory.ts';
import { openRedis } from './open-redis.ts';

const stream = 'banking.account.v1-core-a-1';

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('publishes events on the channel of their type, and drops messages while Redis is unreachable', async () => {
  await using server = await startRedis();
  await using memory = openMemory();
  const { store } = memory;
  await using redis = await openRedis(server.url);
  await using mirror = createLiveMirror(store, { outlet: redis.mirror });
  await mirror.start();
  const screen = new Redis(server.url, { enableReadyCheck: false });
  // The client reconnects by itself and may emit errors.
  screen.on('error', () => undefined);
  const heard: (readonly [string, string])[] = [];
  screen.on('message', (channel, text) => void heard.push([channel, text]));
  try {
    await screen.subscribe('events.account.credited.v1');
    const event = newEvent({ type: 'account.credited.v1', payload: { amount: 5 } });
    await store.append(stream, [newEvent({ type: 'account.opened.v1' }), event]);
    await until('the message', () => heard.length === 1);
    assert.equal(heard[0]?.[0], 'events.account.credited.v1');
    assert.deepEqual(JSON.parse(heard[0][1]), {
      eventId: event.eventId,
      eventType: 'account.credited.v1',
      aggregateId: event.aggregate.id,
      payload: { amount: 5 },
      metadata: { correlationId: event.correlationId, causationId: null, userId: null },
    });
    await server.kill();
    await until('messages are dropped', async () => {
      await store.append(stream, [newEvent()]);
      return mirror.dropped > 0;
    });
    await server.start();
    await until('messages arrive again', async () => {
      await store.append(stream, [newEvent({ type: 'account.credited.v1' })]);
      return heard.length > 1;
    });
  } finally {
    screen.disconnect();
  }
});

test('publishes every event to every node of a cluster', async () => {
  const { urls, nodes } = await sharedRedisCluster();
  const target = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
  await using memory = openMemory();
  const { store } = memory;
  await using redis = await openRedis(target);
  await using mirror = createLiveMirror(store, { outlet: redis.mirror });
  await mirror.start();
  const screens = urls.map((url) => new Redis(url, { enableReadyCheck: false }));
  try {
    const heard = screens.map((): string[] => []);
    for (const [at, screen] of screens.entries()) {
      screen.on('error', () => undefined);
      screen.on('message', (_channel, text) => void heard[at]?.push(text));
      await screen.subscribe('events.account.mirrored.v1');
    }
    // A node that has not joined the cluster bus yet misses messages.
    await until('all nodes receive the same event', async () => {
      const event = newEvent({ type: 'account.mirrored.v1' });
      await store.append(stream, [event]);
      await new Promise((resolve) => setTimeout(resolve, 50));
      return heard.every((texts) => texts.some((text) => text.includes(event.eventId)));
    });
  } finally {
    for (const screen of screens) screen.disconnect();
  }
});
