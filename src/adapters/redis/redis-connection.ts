// How the adapter talks to Redis: the user's client or one of our own, which comes back by itself,
// keeps no queue while it is away, and tells of it once.

import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { redisClosed, redisUnavailable } from './redis-error.ts';
import { watchRedis, type RedisPresence } from './redis-presence.ts';
import { runScript, type RedisScript } from './redis-script.ts';
import { parseRedisUrl, type RedisAddress } from './redis-url.ts';

export type RedisClient = Redis | Cluster;

export interface RedisConnectionOptions {
  readonly observer?: Observer;
  readonly clock?: Clock;
  /** How long an answer may take. Default: 5 s. Of a client of your own, what it is set to counts. */
  readonly timeoutMs?: number;
}

export interface RedisConnection extends AsyncDisposable {
  readonly client: RedisClient;
  /** Rejects at once while the server is away: `STORE_UNAVAILABLE`, to be tried again. */
  ask<T>(call: (client: RedisClient) => Promise<T>): Promise<T>;
  readonly run: (
    script: RedisScript,
    keys: readonly string[],
    values: readonly (string | number)[],
  ) => Promise<unknown>;
}

const redisDefaults = {
  timeoutMs: 5_000,
  connectTimeoutMs: 5_000,
  /** Between attempts to come back. */
  reconnectMsMax: 1_000,
} as const;

/** With a URL: connects, or says `STORE_UNAVAILABLE`. A client of the user's stays the user's to close. */
export async function connectRedis(
  target: string | RedisClient,
  options: RedisConnectionOptions = {},
): Promise<RedisConnection> {
  const { observer = silentObserver, clock = systemClock } = options;
  if (typeof target !== 'string') {
    const presence = watchRedis(target, { observer, clock });
    return connectionOf(target, presence, () => presence.stop());
  }
  const address = parseRedisUrl(target);
  const client = await createClient(address, options);
  const presence = watchRedis(client, { observer, clock });
  const close = (): void => {
    presence.stop();
    end(client);
  };
  try {
    await client.connect();
  } catch (error) {
    close();
    throw redisUnavailable(presence.lastError ?? error);
  }
  return connectionOf(client, presence, close);
}

async function createClient(
  { cluster, tls, nodes, username, password, db }: RedisAddress,
  { timeoutMs = redisDefaults.timeoutMs }: RedisConnectionOptions,
): Promise<RedisClient> {
  const driver = await loadDriver('ioredis', () => import('ioredis'));
  const retryStrategy = (attempt: number): number =>
    Math.min(redisDefaults.reconnectMsMax, 50 * attempt);
  const common: RedisOptions = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
    commandTimeout: timeoutMs,
    connectTimeout: redisDefaults.connectTimeoutMs,
    // What was under way when the connection broke may have happened: the caller decides.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  };
  if (cluster) {
    const settings: ClusterOptions = {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryStrategy,
      redisOptions: common,
      // A slot that moves or fails over: some tries, then the caller's turn.
      maxRedirections: 6,
      retryDelayOnFailover: 100,
      retryDelayOnClusterDown: 100,
      slotsRefreshTimeout: redisDefaults.connectTimeoutMs,
    };
    return new driver.Cluster([...nodes], settings);
  }
  const [{ host, port } = { host: '', port: 0 }] = nodes;
  return new driver.Redis({
    ...common,
    host,
    port,
    db,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy,
    // The name leads to another server since a failover, or this one lost its role.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  });
}

function connectionOf(
  client: RedisClient,
  presence: RedisPresence,
  close: () => void,
): RedisConnection {
  let isClosed = false;
  const ask = async <T>(call: (client: RedisClient) => Promise<T>): Promise<T> => {
    if (isClosed) throw redisClosed();
    try {
      const answer = await call(client);
      presence.worked();
      return answer;
    } catch (error) {
      if (isClosed) throw redisClosed();
      const told = redisUnavailable(error);
      if (told.retryable) presence.failed(error);
      throw told;
    }
  };
  return {
    client,
    ask,
    run: (script, keys, values) => ask((each) => runScript(each, script, keys, values)),
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      close();
    },
  };
}

function end(client: RedisClient): void {
  // Without any listener, ioredis prints what still comes in.
  client.on('error', () => undefined);
  client.disconnect();
}
