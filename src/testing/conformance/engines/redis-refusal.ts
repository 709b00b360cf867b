// Makes Redis servers refuse connections, which simulates an outage.

import { soakMinutes } from '../../property-runs.ts';
import type { RedisServer } from '../../servers/redis-server.ts';
import { connectRedis } from '../../../engines/redis/connection/connection.ts';

/**
 * Closes the clients' connections and refuses new ones until the result is called. A node of a cluster serves
 * immediately afterwards; a node that was killed and started again refuses writes for two seconds.
 */
export async function refuseConnections(
  servers: readonly Pick<RedisServer, 'url'>[],
): Promise<() => Promise<void>> {
  await using opening = new AsyncDisposableStack();
  const clients = await Promise.all(
    servers.map(async ({ url }) => opening.use(await connectRedis(url)).client),
  );
  const open = opening.move();
  // This connection stays: `CLIENT KILL` skips its caller, and `bind` is about new connections only.
  await Promise.all(
    clients.map(async (client) => {
      await client.call('CONFIG', 'SET', 'bind', '');
      for (const type of ['normal', 'pubsub']) await client.call('CLIENT', 'KILL', 'TYPE', type);
    }),
  );
  return async () => {
    await Promise.all(clients.map((client) => client.call('CONFIG', 'SET', 'bind', '127.0.0.1')));
    await open.disposeAsync();
  };
}

/** Simulates outages: kills the servers the first time and in the soak test, else makes them refuse connections. */
export function createOutages(cluster: {
  readonly nodes: readonly RedisServer[];
  kill(): Promise<void>;
  start(): Promise<void>;
}): { kill(): Promise<void>; start(): Promise<void> } {
  let isFirst = true;
  let accept: (() => Promise<void>) | undefined;
  return {
    async kill() {
      if (isFirst || soakMinutes > 0) await cluster.kill();
      else accept = await refuseConnections(cluster.nodes);
      isFirst = false;
    },
    async start() {
      await (accept ?? (() => cluster.start()))();
      accept = undefined;
    },
  };
}
