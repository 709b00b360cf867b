// A temporary PostgreSQL cluster on a free port, with as many databases as needed.

import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { chown, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, usualFolders } from './find-program.ts';
import { loopback } from './reserve-port.ts';
import { launchServer, type ServerOptions } from './launch-server.ts';
import { runProgram, type ProgramUser } from './run-program.ts';
import type { ServerProcess } from './server-process.ts';

export interface PostgresOptions extends ServerOptions {
  /** Off for tests, because a kill of the process loses no written data. On for benchmarks. */
  readonly fsync?: boolean | undefined;
  /** Further settings, by their names in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
}

export interface PostgresServer extends ServerProcess {
  /** The database of the superuser: `postgres://postgres@127.0.0.1:<port>/postgres` */
  readonly url: string;
  /** Creates an empty database and returns its url. */
  createDatabase(name?: string): Promise<string>;
}

const debianFolder = '/usr/lib/postgresql';
const superuser = 'postgres';

/**
 * Starts a separate PostgreSQL for a test.
 *
 * @example
 * import { startPostgres } from 'millrace/testing';
 *
 * await using postgres = await startPostgres({ settings: { max_connections: '20' } });
 * const url = await postgres.createDatabase();
 * console.log(url);
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const folders = options.programFolders ?? postgresFolders();
  const find = (name: string): string =>
    findProgram({ name, debianPackage: 'postgresql', folders });
  const programs = {
    initdb: find('initdb'),
    postgres: find('postgres'),
    createdb: find('createdb'),
  };
  const user = await unprivilegedUser();

  const server = await launchServer(options, async ({ folder, port }) => {
    const data = join(folder, 'data');
    if (user !== undefined) await chown(folder, user.uid, user.gid);
    await runProgram({
      program: programs.initdb,
      args: ['-D', data, '-U', superuser, '-A', 'trust', '-E', 'UTF8', '--no-sync'],
      folder,
      user,
      signal: options.signal,
    });
    const settings = {
      listen_addresses: loopback,
      port: String(port),
      unix_socket_directories: '',
      fsync: options.fsync === true ? 'on' : 'off',
      // Test files share the server; each has several stores, and each store a pool.
      max_connections: '500',
      ...options.settings,
    };
    return {
      name: 'postgres',
      program: programs.postgres,
      args: [
        '-D',
        data,
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      user,
      // "Fast": ends the sessions. SIGTERM would wait for the clients to leave.
      stopSignal: 'SIGINT',
      // "Immediate": no checkpoint, but unlike SIGKILL it releases its shared memory.
      discardSignal: 'SIGQUIT',
      isReady: (pid) => isReady(data, pid),
    };
  });

  const urlOf = (database: string): string =>
    `postgres://${superuser}@${server.host}:${server.port}/${encodeURIComponent(database)}`;
  return Object.assign(server, {
    url: urlOf(superuser),
    async createDatabase(name = `test_${randomBytes(6).toString('hex')}`) {
      const address = ['-h', server.host, '-p', String(server.port), '-U', superuser];
      // A connection to the template would make the copy fail, and template0 allows none.
      const args = [...address, '-T', 'template0', '--', name];
      await runProgram({ program: programs.createdb, args, folder: server.folder });
      return urlOf(name);
    },
  });
}

/** Debian keeps the server's programs off PATH, one folder per version: the newest first. */
export function postgresFolders(): readonly string[] {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : [];
  const newestFirst = versions.toSorted((one, other) => Number(other) - Number(one));
  return [...newestFirst.map((version) => join(debianFolder, version, 'bin')), ...usualFolders()];
}

/** PostgreSQL does not run as root; its package creates a user for it. */
async function unprivilegedUser(): Promise<ProgramUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  return { uid: await idOfPostgres('-u'), gid: await idOfPostgres('-g') };
}

async function idOfPostgres(flag: '-u' | '-g'): Promise<number> {
  return Number(await runProgram({ program: 'id', args: [flag, 'postgres'], folder: '/' }));
}

/** Reads postmaster.pid like pg_ctl: it contains the pid and, later, the ready state. */
async function isReady(data: string, pid: number): Promise<boolean> {
  try {
    const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
  } catch {
    // PostgreSQL has not written the file yet.
    return false;
  }
}
