// The health of webhook endpoints on PostgreSQL, shared by all processes that send.

import type { Pool } from 'pg';
import {
  healthy,
  type EndpointHealth,
  type EndpointHealthStore,
} from '../../delivery/endpoint-health.ts';
import { tableName } from '../../delivery/table-name.ts';

export interface PostgresEndpointHealthOptions {
  /** Default: `millrace_endpoint_health`; with a schema before a dot. */
  readonly table?: string;
}

/**
 * Creates the table where it is missing; the pool stays yours to end.
 *
 * @example
 * import pg from 'pg';
 * import { postgresEndpointHealth } from 'millrace/adapters/postgres';
 *
 * const health = await postgresEndpointHealth(new pg.Pool());
 * await health.update('acme', () => ({ failures: 0 })); // enables it again
 */
export async function postgresEndpointHealth(
  pool: Pool,
  options: PostgresEndpointHealthOptions = {},
): Promise<EndpointHealthStore> {
  const { quoted: table } = tableName(options.table ?? 'millrace_endpoint_health');
  // One text is one transaction; two at once would both find the table missing, and one would fail.
  await pool.query(
    `select pg_advisory_xact_lock(hashtext('millrace endpoint health'));
     create table if not exists ${table} (
       endpoint_id text primary key,
       health jsonb not null,
       updated_at timestamptz not null default clock_timestamp()
     )`,
  );

  return {
    async read(endpointId) {
      const { rows } = await pool.query<{ health: EndpointHealth }>(
        `select health from ${table} where endpoint_id = $1`,
        [endpointId],
      );
      return rows[0]?.health;
    },
    async update(endpointId, change) {
      const client = await pool.connect();
      let isBroken = false;
      try {
        await client.query('begin');
        // Makes the row that is then locked, or waits for whoever makes it or has it locked.
        const { rows } = await client.query<{ health: EndpointHealth }>(
          `insert into ${table} as known (endpoint_id, health) values ($1, $2)
           on conflict (endpoint_id) do update set health = known.health
           returning health`,
          [endpointId, JSON.stringify(healthy)],
        );
        const next = change(rows[0]?.health ?? healthy);
        await client.query(
          `update ${table} set health = $2, updated_at = clock_timestamp() where endpoint_id = $1`,
          [endpointId, JSON.stringify(next)],
        );
        await client.query('commit');
        return next;
      } catch (error) {
        // Where even this fails the connection is broken, and the server undoes it by itself.
        await client.query('rollback').catch(() => {
          isBroken = true;
        });
        throw error;
      } finally {
        client.release(isBroken);
      }
    },
  };
}
