import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { breakerStoreConformance } from '../../../testing/conformance/delivery/breaker-store.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { postgresBreakerStore } from './breaker-store.ts';

const { url } = await sharedPostgres();
const pools = [1, 2].map(() => new pg.Pool({ connectionString: url, max: 4 }));
after(async () => {
  for (const pool of pools) await pool.end();
});
// Open both stores concurrently, like processes that start at the same time.
const [store, second] = await Promise.all(pools.map((pool) => postgresBreakerStore(pool)));
assert.ok(store !== undefined && second !== undefined);

for (const { name, run } of breakerStoreConformance({ store, second })) {
  test(`breakers in PostgreSQL: ${name}`, run);
}
