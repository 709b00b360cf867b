// Says from another thread that a worker is alive, while the main one is busy (`BeatThread`).

import type { BeatConnection } from '../../tasks/task-engine.ts';
import { createBusSpace } from './redis-bus-space.ts';
import { connectRedis } from './redis-connection.ts';
import { createTaskCalls, tasksError } from './redis-task-calls.ts';
import { createTaskSpace } from './redis-task-space.ts';

export interface RedisBeatSettings {
  readonly url: string;
  readonly keyPrefix: string;
}

export async function openTaskBeat({ url, keyPrefix }: RedisBeatSettings): Promise<BeatConnection> {
  const connection = await connectRedis(url).catch((error: unknown) => {
    throw tasksError(error);
  });
  const calls = createTaskCalls(connection);
  const { isCluster } = connection.client;
  const { workers } = createTaskSpace(createBusSpace({ isCluster, prefix: keyPrefix }));
  return {
    async beat({ worker, aliveUntilMs }) {
      await calls.ask((client) => client.hset(workers, worker, aliveUntilMs));
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
