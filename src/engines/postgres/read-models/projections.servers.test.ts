import { after, test } from 'node:test';
import { projectionsConformance } from '../../../testing/conformance/projections/projections.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { openPostgres } from '../open-postgres.ts';

const { url } = await sharedPostgres();
const db = await openPostgres(url, { schema: 'projections', connectionsMax: 8 });
after(() => db[Symbol.asyncDispose]());

for (const { name, run } of projectionsConformance({ open: async () => db })) {
  test(`projections in PostgreSQL: ${name}`, run);
}
