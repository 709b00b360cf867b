// A connection of the test's own, for transactions and for what an administrator does.

import pg from 'pg';
import { until } from './rig.ts';

export async function connect(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client(url);
  // The query under way tells of a broken connection, too.
  client.on('error', () => undefined);
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** Ends the connections that the query names by `pid`, and returns how many there were. */
export async function terminate(admin: pg.Client, pids: string): Promise<number> {
  const { rows } = await admin.query(`select pg_terminate_backend(pid) from (${pids}) p`);
  return rows.length;
}

/**
 * Waits until the server is done with all clients of a database that are gone: what is still open for one of
 * them holds readers back, who then do not see what came after it.
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
