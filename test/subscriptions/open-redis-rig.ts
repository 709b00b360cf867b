// Events in a new SQLite file, and the subscription with its effects in a separate Redis.

import { Redis } from 'ioredis';
import { openRedis } from '../../src/engines/redis/index.ts';
import { startRedis, type RedisServer } from '../../src/testing/servers/redis-server.ts';
import { effectKeys, type Effect } from './effects.ts';
import type { OpenedRig } from './kill-workers.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';

export interface RedisRig extends OpenedRig {
  readonly redis: RedisServer;
}

export async function openRedisRig(): Promise<RedisRig> {
  await using opening = new AsyncDisposableStack();
  const events = opening.use(await openSqliteRig());
  const redis = opening.use(await startRedis({ appendOnly: 'always' }));
  const engine = opening.use(await openRedis(redis.url));
  const client = new Redis(redis.url);
  // The test kills the server, and the client connects again.
  client.on('error', () => undefined);
  opening.defer(() => client.disconnect());
  const opened = opening.move();
  return {
    url: events.url,
    redis,
    store: events.store,
    subscriptions: engine.subscriptions,
    effects: async () =>
      (await client.lrange(effectKeys.list, 0, -1)).map((text) => JSON.parse(text) as Effect),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
