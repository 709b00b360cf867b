// Separate connections for workers and subscriptions, which block. They queue their commands while the server is
// unreachable.

import type { RedisOptions } from 'ioredis';
import type { RedisClient } from '../connection/connection.ts';

const queueing: RedisOptions = {
  maxRetriesPerRequest: null,
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
};

/** A blocking command has no time limit. */
const noTimeLimit: object = { commandTimeout: undefined };

/** Connects and reconnects by itself. The original client reports outages. */
export function blockingClient(client: RedisClient): RedisClient {
  const blocking = isCluster(client)
    ? client.duplicate([], {
        enableOfflineQueue: true,
        lazyConnect: false,
        redisOptions: { ...client.options.redisOptions, ...queueing, ...noTimeLimit },
      })
    : client.duplicate({ ...queueing, ...noTimeLimit, lazyConnect: false });
  blocking.on('error', () => undefined);
  return blocking;
}

/**
 * Returns a function that disconnects all copies of the client that are made after this call. BullMQ closes its copy of
 * a cluster client twice, and the copy reconnects in between. When an old connection then closes late, ioredis loses
 * track of the new connection to the same node, which would stay open.
 */
export function trackCopies(client: RedisClient): () => void {
  const copies: RedisClient[] = [];
  const nodes = new Set<RedisClient>();
  const duplicate = client.duplicate.bind(client) as (...given: unknown[]) => RedisClient;
  let isEnded = false;
  const trackNode = (node: RedisClient): void => {
    nodes.add(node);
    node.once('end', () => nodes.delete(node));
    if (isEnded) node.disconnect();
  };
  const tracked = (...given: unknown[]): RedisClient => {
    const copy = duplicate(...given);
    copies.push(copy);
    copy.on('+node', trackNode);
    return copy;
  };
  Object.assign(client, { duplicate: tracked });
  return () => {
    isEnded = true;
    for (const each of [...copies, ...nodes]) each.disconnect();
  };
}

export function isCluster(client: RedisClient): client is Extract<RedisClient, { nodes: unknown }> {
  return 'nodes' in client;
}
