// An open transaction with a message, which the caller commits.

import type { Pool, PoolClient } from 'pg';

export async function openTransaction(
  pool: Pool,
  write: (client: PoolClient) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query('begin');
  await write(client);
  return async () => {
    await client.query('commit');
    client.release();
  };
}
