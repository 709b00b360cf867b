import { after, test } from 'node:test';
import { endpointHealthConformance } from '../../../testing/conformance/delivery/endpoint-health.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { openPostgres } from '../open-postgres.ts';

const { url } = await sharedPostgres();
const options = { migrate: 'off', connectionsMax: 4 } as const;
const [one, two] = [await openPostgres(url, options), await openPostgres(url, options)];
after(async () => {
  await one[Symbol.asyncDispose]();
  await two[Symbol.asyncDispose]();
});
const [store, second] = [one.endpointHealth, two.endpointHealth];
// Both create the table concurrently, like processes that start at the same time.
await Promise.all([store.read('none'), second.read('none')]);

for (const { name, run } of endpointHealthConformance({ store, second })) {
  test(`endpoint health in PostgreSQL: ${name}`, run);
}
