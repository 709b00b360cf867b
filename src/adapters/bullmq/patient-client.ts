// Those who wait for jobs and nudges need connections of their own, which block, and which keep their commands
// while the server is away.

import type { RedisOptions } from 'ioredis';
import type { RedisClient } from '../redis/redis-connection.ts';

const patience: RedisOptions = {
  maxRetriesPerRequest: null,
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
};

/** A command that blocks has no time limit. */
const noTimeLimit: object = { commandTimeout: undefined };

/** Connects and comes back by itself. Whether the server is there, the client that it is made of tells. */
export function patientClient(client: RedisClient): RedisClient {
  const patient = isCluster(client)
    ? client.duplicate([], {
        enableOfflineQueue: true,
        lazyConnect: false,
        redisOptions: { ...client.options.redisOptions, ...patience, ...noTimeLimit },
      })
    : client.duplicate({ ...patience, ...noTimeLimit, lazyConnect: false });
  patient.on('error', () => undefined);
  return patient;
}

/**
 * Returns what ends every copy that somebody makes of the client from now on. BullMQ closes its copy of a
 * cluster's client twice, and lets it come back in between; the late end of an old connection then makes
 * ioredis forget the new one to the same node, which nobody ends any more.
 */
export function keepCopies(client: RedisClient): () => void {
  const copies: RedisClient[] = [];
  const nodes = new Set<RedisClient>();
  const duplicate = client.duplicate.bind(client) as (...given: unknown[]) => RedisClient;
  let isOver = false;
  const keepNode = (node: RedisClient): void => {
    nodes.add(node);
    node.once('end', () => nodes.delete(node));
    if (isOver) node.disconnect();
  };
  const kept = (...given: unknown[]): RedisClient => {
    const copy = duplicate(...given);
    copies.push(copy);
    copy.on('+node', keepNode);
    return copy;
  };
  Object.assign(client, { duplicate: kept });
  return () => {
    isOver = true;
    for (const each of [...copies, ...nodes]) each.disconnect();
  };
}

export function isCluster(client: RedisClient): client is Extract<RedisClient, { nodes: unknown }> {
  return 'nodes' in client;
}
