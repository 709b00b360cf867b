import { after, test } from 'node:test';
import { readModelsConformance } from '../../projections/read-models.conformance.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { postgresEventStore } from './postgres-event-store.ts';

const { url } = await sharedPostgres();
const schema = 'read_models';
const store = await postgresEventStore(url, { schema, connectionsMax: 6 });
const second = await postgresEventStore(url, { schema, connectionsMax: 3 });
after(async () => {
  await store[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

for (const { name, skip, run } of readModelsConformance({
  capabilities: store.readModels.capabilities,
  open: async () => store.readModels,
  second: async () => second.readModels,
  async closed() {
    const closed = await postgresEventStore(url, { schema, connectionsMax: 1 });
    await closed[Symbol.asyncDispose]();
    return closed.readModels;
  },
})) {
  test(`read models in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}
