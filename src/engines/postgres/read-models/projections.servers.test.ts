import { after, test } from 'node:test';
import { projectionsConformance } from '../../../testing/conformance/projections/projections.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { postgresEventStore } from '../store/event-store.ts';

const { url } = await sharedPostgres();
const store = await postgresEventStore(url, { schema: 'projections', connectionsMax: 8 });
after(() => store[Symbol.asyncDispose]());

for (const { name, run } of projectionsConformance({ open: async () => store })) {
  test(`projections in PostgreSQL: ${name}`, run);
}
