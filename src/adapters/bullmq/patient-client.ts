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

export function isCluster(client: RedisClient): client is Extract<RedisClient, { nodes: unknown }> {
  return 'nodes' in client;
}
