import pg from 'pg';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { killCases } from './kill-cases.ts';

async function query(url: string, sql: string): Promise<readonly { readonly ms: string }[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<{ readonly ms: string }>(sql)).rows;
  } finally {
    await client.end();
  }
}

killCases('postgres', async () => (await sharedPostgres()).url, {
  async remainingMs(url) {
    const sql = `select extract(epoch from lease_until - clock_timestamp()) * 1000 as ms
      from core_outbox.ready where token <> 0`;
    return (await query(url, sql)).map(({ ms }) => Number(ms));
  },
  async expire(url) {
    await query(url, "update core_outbox.ready set lease_until = '-infinity'");
  },
});
