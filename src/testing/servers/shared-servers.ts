// One server of each kind for a whole test run: the runner hosts them, and each test file, a separate process, gets an
// isolated part.

import { join } from 'node:path';
import { aborted } from '../../foundation/clock.ts';
import { poolAt, servePool } from './pool-socket.ts';
import {
  createServerPool,
  type ServerPool,
  type SharedNats,
  type SharedPostgres,
  type SharedRedis,
  type SharedRedisCluster,
} from './server-pool.ts';
import type { WaitOptions } from './server-process.ts';
import { createTempFolder, removeTempFolder } from './temp-folder.ts';

const hostVariable = 'MILLRACE_TEST_SERVERS';

let ownPool: ServerPool | undefined;

/**
 * A new empty database in the PostgreSQL of the test run.
 *
 * @example
 * import { sharedPostgres } from 'millrace/testing';
 *
 * const { url } = await sharedPostgres();
 * console.log(url);
 */
export function sharedPostgres({ signal }: WaitOptions = {}): Promise<SharedPostgres> {
  return untilAborted(() => pool().postgres(), signal);
}

/**
 * The Redis of the test run, with a new key prefix.
 *
 * @example
 * import { sharedRedis } from 'millrace/testing';
 *
 * const { url, keyPrefix } = await sharedRedis();
 * console.log(url, `${keyPrefix}queue`);
 */
export function sharedRedis({ signal }: WaitOptions = {}): Promise<SharedRedis> {
  return untilAborted(() => pool().redis(), signal);
}

/**
 * The Redis Cluster of the test run, with a new key prefix.
 *
 * @example
 * import { sharedRedisCluster } from 'millrace/testing';
 *
 * const { nodes, keyPrefix } = await sharedRedisCluster();
 * console.log(nodes, `${keyPrefix}{queue}`);
 */
export function sharedRedisCluster({ signal }: WaitOptions = {}): Promise<SharedRedisCluster> {
  return untilAborted(() => pool().redisCluster(), signal);
}

/**
 * The NATS server of the test run, with a new prefix for subjects and streams.
 *
 * @example
 * import { sharedNats } from 'millrace/testing';
 *
 * const { url, prefix } = await sharedNats();
 * console.log(url, `${prefix}.events.>`);
 */
export function sharedNats({ signal }: WaitOptions = {}): Promise<SharedNats> {
  return untilAborted(() => pool().nats(), signal);
}

/**
 * Hosts the shared servers for this process and its later child processes. Each server starts with the first request.
 * Disposing the host stops them.
 *
 * @example
 * import { hostSharedServers } from 'millrace/testing';
 *
 * await using _host = await hostSharedServers();
 * // … run the test files …
 */
export async function hostSharedServers(): Promise<AsyncDisposable> {
  const folder = await createTempFolder('host');
  const socketPath = join(folder, 'socket');
  const servers = createServerPool();
  const socket = await servePool(servers, socketPath);
  const before = process.env[hostVariable];
  process.env[hostVariable] = socketPath;
  return {
    async [Symbol.asyncDispose]() {
      if (before === undefined) delete process.env[hostVariable];
      else process.env[hostVariable] = before;
      await socket[Symbol.asyncDispose]();
      await servers[Symbol.asyncDispose]();
      await removeTempFolder(folder);
    },
  };
}

function pool(): ServerPool {
  const socketPath = process.env[hostVariable];
  if (socketPath !== undefined) return poolAt(socketPath);
  // Without a runner, the servers are for this process only, and the reaper ends them with it.
  ownPool ??= createServerPool();
  return ownPool;
}

/** The signal cancels only the wait: the server continues to start, because other callers may need it. */
async function untilAborted<T>(get: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return get();
  if (signal.aborted) throw aborted(signal);
  const { promise: abort, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(aborted(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([get(), abort]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
