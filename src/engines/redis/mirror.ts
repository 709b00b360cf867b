// The live mirror on Redis Pub/Sub: `PUBLISH events.<type>`. A subscriber that is disconnected misses messages.

import type { MirrorOutlet } from '../../projections/run/mirror-buffer.ts';
import type { RedisConnection } from './connection/connection.ts';

/** An outlet for `createLiveMirror`. */
export function redisMirror(connection: RedisConnection): MirrorOutlet {
  return {
    async publish(posts) {
      // One pipeline keeps the order of the events.
      await connection.ask((client) =>
        Promise.all(posts.map(({ channel, text }) => client.publish(channel, text))),
      );
    },
  };
}
