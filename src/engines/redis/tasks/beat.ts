// Renews the lease of a worker from another thread while the main thread is busy (`BeatThread`).

import type { BeatConnection } from '../../../tasks/task-engine.ts';
import { createBusKeyspace } from '../bus/keyspace.ts';
import { connectRedis } from '../connection/connection.ts';
import { createTaskKeyspace } from './keyspace.ts';

export interface RedisBeatSettings {
  readonly url: string;
  readonly keyPrefix: string;
}

export async function openTaskBeat({ url, keyPrefix }: RedisBeatSettings): Promise<BeatConnection> {
  const redis = await connectRedis(url);
  const { isCluster } = redis.client;
  const { workers } = createTaskKeyspace(createBusKeyspace({ isCluster, prefix: keyPrefix }));
  return {
    async beat({ worker, aliveUntilMs }) {
      await redis.ask((client) => client.hset(workers, worker, aliveUntilMs));
    },
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}
