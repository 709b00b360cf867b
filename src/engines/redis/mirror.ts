// The live mirror on Redis Pub/Sub: `PUBLISH events.<type>`. A subscriber that is disconnected misses messages.

import type { MirrorOutlet } from '../../projections/run/mirror-buffer.ts';
import {
  connectRedis,
  type RedisClient,
  type RedisConnectionOptions,
} from './connection/connection.ts';

/**
 * An outlet for `createLiveMirror`, by URL or with a client of your own.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { redisMirror } from 'millrace/adapters/redis';
 * import { createLiveMirror } from 'millrace/projections';
 *
 * const store = memoryEventStore();
 * await using outlet = await redisMirror('redis://localhost:6379');
 * await using mirror = createLiveMirror(store, { outlet });
 * await mirror.start();
 */
export async function redisMirror(
  target: string | RedisClient,
  options: RedisConnectionOptions = {},
): Promise<MirrorOutlet & AsyncDisposable> {
  const connection = await connectRedis(target, options);
  return {
    async publish(posts) {
      // One pipeline keeps the order of the events.
      await connection.ask((client) =>
        Promise.all(posts.map(({ channel, text }) => client.publish(channel, text))),
      );
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
