// Servers that many tests share: each starts when the first one asks for it, and everyone gets a
// database or a prefix of their own in it.

import { randomBytes } from 'node:crypto';
import { MillraceError } from '../../foundation/error.ts';
import { startNats } from './nats-server.ts';
import { startPostgres } from './postgres-server.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { startRedis } from './redis-server.ts';

export interface SharedPostgres {
  /** An empty database that nobody else uses. */
  readonly url: string;
}

export interface SharedRedis {
  readonly url: string;
  /** Nobody else's keys begin with it; ends in a colon. */
  readonly keyPrefix: string;
}

export interface SharedRedisCluster {
  readonly urls: readonly string[];
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** Nobody else's keys begin with it; ends in a colon, and holds no hash tag. */
  readonly keyPrefix: string;
}

export interface SharedNats {
  readonly url: string;
  /** Letters and digits, fit to begin a subject, a stream's name or a bucket's. */
  readonly prefix: string;
}

export interface ServerPool {
  postgres(): Promise<SharedPostgres>;
  redis(): Promise<SharedRedis>;
  redisCluster(): Promise<SharedRedisCluster>;
  nats(): Promise<SharedNats>;
}

export function createServerPool(): ServerPool & AsyncDisposable {
  const started: Promise<AsyncDisposable>[] = [];
  let disposed = false;
  const lazily = <T extends AsyncDisposable>(start: () => Promise<T>): (() => Promise<T>) => {
    let server: Promise<T> | undefined;
    return async () => {
      if (disposed) throw new MillraceError('SERVER_UNAVAILABLE', 'the test run is over');
      if (server === undefined) {
        server = start();
        started.push(server);
      }
      return server;
    };
  };
  const postgres = lazily(startPostgres);
  const redis = lazily(startRedis);
  const redisCluster = lazily(startRedisCluster);
  const nats = lazily(startNats);

  return {
    postgres: async () => ({ url: await (await postgres()).createDatabase() }),
    redis: async () => ({ url: (await redis()).url, keyPrefix: `${ownPrefix()}:` }),
    async redisCluster() {
      const { urls, nodes } = await redisCluster();
      return {
        urls,
        nodes: nodes.map(({ host, port }) => ({ host, port })),
        keyPrefix: `${ownPrefix()}:`,
      };
    },
    nats: async () => ({ url: (await nats()).url, prefix: ownPrefix() }),
    async [Symbol.asyncDispose]() {
      disposed = true;
      // One that failed to start has told whoever asked, and left nothing to dispose.
      const servers = await Promise.allSettled(started);
      const running = servers.filter((each) => each.status === 'fulfilled');
      await Promise.all(running.map((each) => each.value[Symbol.asyncDispose]()));
    },
  };
}

/** All of one length, so that none is the beginning of another. */
function ownPrefix(): string {
  return `t${randomBytes(5).toString('hex')}`;
}
