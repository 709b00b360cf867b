// Creates the databases of this benchmark: files in one folder, and databases on one server. Files and server are on the
// same disk and sync every commit.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { startPostgres, type PostgresServer } from '../../src/testing/index.ts';
import type { BenchmarkContext } from '../benchmark.ts';
import type { Engine } from './subject-store.ts';

/** Returns the path or URL of a new, empty database. */
export type NewDatabase = (engine: Engine) => Promise<string>;

export function createDatabases({ defer, signal }: BenchmarkContext): NewDatabase {
  let folder: Promise<string> | undefined;
  let server: Promise<PostgresServer> | undefined;
  let files = 0;
  defer(async () => {
    await (await server)?.[Symbol.asyncDispose]();
    if (folder !== undefined) await rm(await folder, { recursive: true, force: true });
  });
  return async (engine) => {
    if (engine === 'sqlite') {
      folder ??= mkdtemp(join(tmpdir(), 'millrace-bench-'));
      files += 1;
      return join(await folder, `store-${files}.db`);
    }
    // PostgreSQL's default number of connections, not the number for tests.
    server ??= startPostgres({ fsync: true, signal, settings: { max_connections: '100' } });
    return (await server).createDatabase();
  };
}

/** The number of committed rows, read over a separate connection. */
export async function countRows(engine: Engine, address: string, table: string): Promise<number> {
  const sql = `select count(*) as rows from ${table}`;
  if (engine === 'sqlite') {
    const database = new DatabaseSync(address, { readOnly: true });
    const row = database.prepare(sql).get();
    database.close();
    return Number(row?.['rows']);
  }
  const client = new pg.Client(address);
  await client.connect();
  const { rows } = await client.query<{ rows: string }>(sql);
  await client.end();
  return Number(rows[0]?.rows);
}
