// Shares a pool of servers with other processes over a socket: the request is one word, the response one JSON value.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { MillraceError } from '../../foundation/error.ts';
import type {
  ServerPool,
  SharedNats,
  SharedPostgres,
  SharedRedis,
  SharedRedisCluster,
} from './server-pool.ts';

type Kind = keyof ServerPool;
type Reply = { readonly server: unknown } | { readonly problem: string };

/** Serves requests at the socket until disposed; does not keep the process alive. */
export async function servePool(pool: ServerPool, socketPath: string): Promise<AsyncDisposable> {
  const server = createServer((socket) => void respond(pool, socket));
  server.listen(socketPath);
  await once(server, 'listening');
  server.unref();
  return {
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

/** A pool that forwards requests to the socket. */
export function poolAt(socketPath: string): ServerPool {
  return {
    postgres: () => ask<SharedPostgres>(socketPath, 'postgres'),
    redis: () => ask<SharedRedis>(socketPath, 'redis'),
    redisCluster: () => ask<SharedRedisCluster>(socketPath, 'redisCluster'),
    nats: () => ask<SharedNats>(socketPath, 'nats'),
  };
}

async function respond(pool: ServerPool, socket: Socket): Promise<void> {
  // The client was killed while waiting, so no response is needed.
  socket.on('error', () => socket.destroy());
  let reply: Reply;
  try {
    const [word] = (await once(socket, 'data')) as [Buffer];
    reply = { server: await pool[word.toString() as Kind]() };
  } catch (error) {
    reply = { problem: error instanceof Error ? error.message : String(error) };
  }
  socket.end(JSON.stringify(reply));
}

async function ask<T>(socketPath: string, kind: Kind): Promise<T> {
  let reply: Reply;
  try {
    const socket = connect(socketPath);
    socket.write(kind);
    reply = JSON.parse(await text(socket));
  } catch (cause) {
    const message = `the test run that shares its servers does not respond at ${socketPath}`;
    throw new MillraceError('SERVER_UNAVAILABLE', message, { cause });
  }
  if ('problem' in reply) throw new MillraceError('SERVER_UNAVAILABLE', reply.problem);
  return reply.server as T;
}
