// Servers shared by many tests: each starts with the first request, and every test gets a separate database or prefix.

import { randomBytes } from 'node:crypto';
import { MillraceError } from '../../foundation/error.ts';
import { startNats } from './nats-server.ts';
import { startPostgres } from './postgres-server.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { startRedis } from './redis-server.ts';

export interface SharedPostgres {
  /** An empty database for this caller only. */
  readonly url: string;
}

export interface SharedRedis {
  readonly url: string;
  /** A unique key prefix; ends in a colon. */
  readonly keyPrefix: string;
}

export interface SharedRedisCluster {
  readonly urls: readonly string[];
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** A unique key prefix; ends in a colon and contains no hash tag. */
  readonly keyPrefix: string;
}

export interface SharedNats {
  readonly url: string;
  /** Letters and digits, valid at the start of a subject, stream name or bucket name. */
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
      if (disposed) throw new MillraceError('SERVER_UNAVAILABLE', 'the test run has ended');
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
      // A failed start was reported to its caller and left nothing to dispose.
      const servers = await Promise.allSettled(started);
      const running = servers.filter((each) => each.status === 'fulfilled');
      await Promise.all(running.map((each) => each.value[Symbol.asyncDispose]()));
    },
  };
}

/** All of one length, so none is a prefix of another. */
function ownPrefix(): string {
  return `t${randomBytes(5).toString('hex')}`;
}
