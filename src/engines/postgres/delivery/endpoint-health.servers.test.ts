import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { endpointHealthConformance } from '../../../testing/conformance/delivery/endpoint-health.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { postgresEndpointHealth } from './endpoint-health.ts';

const { url } = await sharedPostgres();
const pools = [1, 2].map(() => new pg.Pool({ connectionString: url, max: 4 }));
after(async () => {
  for (const pool of pools) await pool.end();
});
// Open both stores concurrently, like processes that start at the same time.
const [store, second] = await Promise.all(pools.map((pool) => postgresEndpointHealth(pool)));
assert.ok(store !== undefined && second !== undefined);

for (const { name, run } of endpointHealthConformance({ store, second })) {
  test(`endpoint health in PostgreSQL: ${name}`, run);
}
