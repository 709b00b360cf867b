// A temporary Redis server on a free port.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { resultOf } from './converse.ts';
import { findProgram, usualFolders } from './find-program.ts';
import { loopback } from './reserve-port.ts';
import { launchServer, type LayOut, type ServerOptions } from './launch-server.ts';
import type { ServerProcess } from './server-process.ts';

export interface RedisOptions extends ServerOptions {
  /** Whether and how often writes reach the disk; 'no' forgets everything at a kill. */
  readonly appendOnly?: 'no' | 'everysec' | 'always' | undefined;
  /** Further lines of redis.conf. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
}

export interface RedisServer extends ServerProcess {
  /** `redis://127.0.0.1:<port>` */
  readonly url: string;
}

/**
 * Starts a separate Redis for a test.
 *
 * @example
 * import { startRedis } from 'millrace/testing';
 *
 * await using redis = await startRedis({ appendOnly: 'always' });
 * console.log(redis.url);
 * await redis.kill();
 * await redis.start(); // same port, same data
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return withUrl(await launchServer(options, redisLayout(options)));
}

/** The plan of a Redis process; a cluster node is a Redis with more settings. */
export function redisLayout(options: RedisOptions): LayOut {
  const program = findProgram({
    name: 'redis-server',
    debianPackage: 'redis-server',
    folders: options.programFolders ?? usualFolders(),
  });
  const appendOnly = options.appendOnly ?? 'no';
  return async ({ folder, port }) => {
    const settings = {
      bind: loopback,
      port: String(port),
      dir: `"${folder}"`,
      save: '""',
      appendonly: appendOnly === 'no' ? 'no' : 'yes',
      appendfsync: appendOnly,
      ...options.settings,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
    const file = join(folder, 'redis.conf');
    await writeFile(file, lines.join(''));
    return {
      name: 'redis-server',
      program,
      args: [file],
      stopSignal: 'SIGTERM',
      discardSignal: 'SIGKILL',
      isReady: (pid) => isReady(port, pid),
    };
  };
}

export function withUrl(server: ServerProcess): RedisServer {
  return Object.assign(server, { url: `redis://${server.host}:${server.port}` });
}

async function isReady(port: number, pid: number): Promise<boolean> {
  // INFO is answered, PING refused while the data is still being loaded.
  const turn = { send: 'INFO server\r\nPING\r\n', expect: /^(\+PONG|-LOADING.*)\r\n/m };
  const answer = await resultOf(port, turn);
  return answer.includes(`process_id:${pid}\r\n`) && answer.endsWith('+PONG\r\n');
}
