// A separate PostgreSQL connection, for transactions and administration.

import pg from 'pg';
import { until } from './rig.ts';

export async function connect(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client(url);
  // A broken connection also rejects the running query.
  client.on('error', () => undefined);
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** Ends the connections with these `pid`s, and returns their number. */
export async function terminate(admin: pg.Client, pids: string): Promise<number> {
  const { rows } = await admin.query(`select pg_terminate_backend(pid) from (${pids}) p`);
  return rows.length;
}

/**
 * Waits until the server has closed the sessions of killed clients: their open transactions hide later
 * events from readers.
 */
export async function whenClientsGone(url: string): Promise<void> {
  await using client = await connect(url);
  await until('the clients are gone', async () => {
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database()
         and backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
    return rows.length === 0;
  });
}
