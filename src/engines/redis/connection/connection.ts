// The connection to Redis, with the user's client or one that is opened here. The latter reconnects by itself
// and queues no commands while the server is unreachable. Each outage is logged once.

import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { isCluster, urlParts } from '../../../contracts/engine-url.ts';
import { withinTime } from '../../../foundation/async/within-time.ts';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { MillraceError, type PortPrefix, renameError } from '../../../foundation/error.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import { silentObserver, type Observer } from '../../../foundation/observer.ts';
import { runScript, type RedisScript, type ScriptValue } from './script.ts';

export type RedisClient = Redis | Cluster;

export interface RedisConnectionOptions {
  readonly observer?: Observer | undefined;
  readonly clock?: Clock | undefined;
  /** Time limit of a command. Default: 5 s. A client that you pass keeps its time limit. */
  readonly timeoutMs?: number | undefined;
}

export interface RedisConnection extends AsyncDisposable {
  readonly client: RedisClient;
  /** Rejects immediately with a retryable `STORE_UNAVAILABLE` while the server is unreachable. */
  ask<T>(call: (client: RedisClient) => Promise<T>): Promise<T>;
  /** Returns bulk strings as JavaScript strings. */
  readonly run: RunScript;
  /** Returns bulk strings as buffers, because they may hold any bytes. */
  readonly runForBytes: RunScript;
  /** Calls the listener when the client is connected again. Returns a function that ends the calls. */
  onRestored(listener: () => void): () => void;
  /** The same client for one role, with the error codes of its port. Closing the result leaves the client open. */
  forRole(prefix?: PortPrefix): RedisConnection;
}

type RunScript = (
  script: RedisScript,
  keys: readonly string[],
  values: readonly ScriptValue[],
) => Promise<unknown>;

const redisDefaults = {
  timeoutMs: 5_000,
  connectTimeoutMs: 5_000,
  /** Longest wait between two attempts to reconnect. */
  reconnectMsMax: 1_000,
  /** After this time without a failure, a successful call means that the connection is restored. */
  quietMs: 1_000,
} as const;

/** Rejects with `STORE_UNAVAILABLE` if Redis does not reply. A client that the user passes stays open after disposal. */
export async function connectRedis(
  target: string | RedisClient,
  options: RedisConnectionOptions = {},
): Promise<RedisConnection> {
  const isOwned = typeof target === 'string';
  const client = isOwned ? await createClient(target, options) : target;
  const health = watchHealth(client, options);
  const close = (): void => {
    health.stop();
    if (!isOwned) return;
    // ioredis prints errors that no listener receives.
    client.on('error', () => undefined);
    client.disconnect();
  };
  try {
    // The driver has no limit for a server that accepts the connection and does not reply.
    const connecting: Promise<unknown> = isOwned ? client.connect() : client.ping();
    await withTimeout(redisDefaults.connectTimeoutMs, connecting, systemClock);
  } catch (error) {
    close();
    throw redisUnavailable(health.lastError ?? error);
  }
  return connectionOf(client, health, { close });
}

async function createClient(
  url: string,
  { timeoutMs = redisDefaults.timeoutMs }: RedisConnectionOptions,
): Promise<RedisClient> {
  const parts = urlParts(url, 'url', 'redis');
  const nodes = parts.hosts.map(({ host, port }) => ({
    host: host.replaceAll(/[[\]]/g, ''),
    port,
  }));
  const driver = await loadDriver('ioredis', () => import('ioredis'));
  const retryStrategy = (attempt: number): number =>
    Math.min(redisDefaults.reconnectMsMax, 50 * attempt);
  const common: RedisOptions = {
    username: parts.user,
    password: parts.password,
    tls: parts.scheme.startsWith('rediss') ? {} : undefined,
    commandTimeout: timeoutMs,
    connectTimeout: redisDefaults.connectTimeoutMs,
    // A command that was in flight when the connection broke may have run: the caller decides about a retry.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  };
  if (isCluster(parts)) {
    const settings: ClusterOptions = {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryStrategy,
      redisOptions: common,
      // Bounds the retries during a slot migration or a failover; after that the call rejects.
      maxRedirections: 6,
      retryDelayOnFailover: 100,
      retryDelayOnClusterDown: 100,
      slotsRefreshTimeout: redisDefaults.connectTimeoutMs,
    };
    return new driver.Cluster(nodes, settings);
  }
  const [{ host, port } = { host: '', port: 0 }] = nodes;
  return new driver.Redis({
    ...common,
    host,
    port,
    db: Number(parts.path),
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy,
    // After a failover the host name resolves to another server, or this server became a replica.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  });
}

function connectionOf(
  client: RedisClient,
  health: ConnectionHealth,
  { close, prefix }: { readonly close?: () => void; readonly prefix?: PortPrefix | undefined },
): RedisConnection {
  let isClosed = false;
  const renamed = (error: unknown): unknown =>
    prefix === undefined ? error : renameError(error, prefix);
  const ask: RedisConnection['ask'] = async (call) => {
    try {
      if (isClosed) throw redisClosed();
      const reply = await call(client);
      health.succeeded();
      return reply;
    } catch (error) {
      if (isClosed) throw renamed(redisClosed());
      const unavailable = redisUnavailable(error);
      if (unavailable.retryable) health.failed(error);
      throw renamed(unavailable);
    }
  };
  const runAs =
    (strings: 'text' | 'bytes'): RunScript =>
    (script, keys, values) =>
      ask((each) => runScript(each, script, keys, values, strings));
  return {
    client,
    ask,
    run: runAs('text'),
    runForBytes: runAs('bytes'),
    onRestored(listener) {
      client.on('ready', listener);
      return () => void client.off('ready', listener);
    },
    forRole: (role) => connectionOf(client, health, { prefix: role }),
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      close?.();
    },
  };
}

interface ConnectionHealth {
  /** The last error that the client emitted. */
  readonly lastError: unknown;
  failed(err: unknown): void;
  succeeded(): void;
  stop(): void;
}

/**
 * Logs one line when the connection is lost and one when it is restored. Calls report their outcome as well,
 * because a hanging server emits no event, and one node of a cluster can fail while the others reply.
 */
function watchHealth(
  client: RedisClient,
  { observer = silentObserver, clock = systemClock }: RedisConnectionOptions,
): ConnectionHealth {
  let isLost = false;
  let lastError: unknown;
  let failedAtMs = 0;

  function failed(err: unknown): void {
    failedAtMs = clock.now();
    if (isLost) return;
    isLost = true;
    observer.log?.warn({ err }, 'Redis connection lost');
    observer.gauge?.('redis_up', 0, {});
  }

  function restored(): void {
    if (isLost) observer.log?.info({}, 'Redis connection restored');
    isLost = false;
    observer.gauge?.('redis_up', 1, {});
  }

  const onError = (err: unknown): void => {
    lastError = err;
    failed(err);
  };
  const onClose = (): void => failed(lastError);
  const events = {
    error: onError,
    'node error': onError,
    close: onClose,
    ready: restored,
  } as const;
  for (const [name, listener] of Object.entries(events)) client.on(name, listener);
  return {
    get lastError() {
      return lastError;
    },
    failed,
    succeeded() {
      if (isLost && clock.now() - failedAtMs >= redisDefaults.quietMs) restored();
    },
    stop() {
      for (const [name, listener] of Object.entries(events)) client.off(name, listener);
    },
  };
}

/** Error replies of a server that starts, fails over, is full, or is disconnected from its cluster. */
const transientReply =
  /^(LOADING|BUSY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|READONLY|OOM|MISCONF|NOREPLICAS|UNBLOCKED|MOVED|ASK)\b/;

export function redisUnavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  // In a cluster, the error of the last node is more specific than "all nodes failed".
  const cause = (error as { readonly lastNodeError?: unknown } | undefined)?.lastNodeError ?? error;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const isReply = cause instanceof Error && cause.name === 'ReplyError';
  return new MillraceError('STORE_UNAVAILABLE', `Redis command failed: ${reason}`, {
    cause: error,
    // Only an error reply can be permanent; every other error comes from the connection.
    retryable: !isReply || transientReply.test(reason),
    details: { reason },
  });
}

/** Rejects after `ms`, because BullMQ and a client of the user may wait without a limit while Redis is unreachable. */
export function withTimeout<T>(ms: number, work: Promise<T>, clock: Clock): Promise<T> {
  const late = (): never => {
    throw new MillraceError('STORE_UNAVAILABLE', `Redis did not reply within ${ms} ms`);
  };
  return withinTime(work, { ms, late, clock });
}

export function redisClosed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the connection to Redis was closed');
}
