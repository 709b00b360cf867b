// The health of webhook endpoints in PostgreSQL, shared by all sending processes.

import type { Pool } from 'pg';
import {
  healthy,
  type EndpointHealth,
  type EndpointHealthStore,
} from '../../../delivery/endpoint-health.ts';
import { createdOnUse, inTransaction } from '../connection/connection.ts';

const table = 'millrace_endpoint_health';

export function postgresEndpointHealth(pool: Pool): EndpointHealthStore {
  const created = createdOnUse(
    pool,
    'endpoint health',
    `create table if not exists ${table} (
       endpoint_id text primary key,
       health jsonb not null,
       updated_at timestamptz not null default clock_timestamp()
     )`,
  );

  return {
    async read(endpointId) {
      const { rows } = await (
        await created()
      ).query<{ health: EndpointHealth }>(`select health from ${table} where endpoint_id = $1`, [
        endpointId,
      ]);
      return rows[0]?.health;
    },
    async update(endpointId, change) {
      return inTransaction(await created(), async (client) => {
        // Inserts the row, or waits for the transaction that has it locked.
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
        return next;
      });
    },
  };
}
