import { after, test } from 'node:test';
import { breakerStoreConformance } from '../../../testing/conformance/delivery/breaker-store.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { openPostgres } from '../open-postgres.ts';

const { url } = await sharedPostgres();
const options = { migrate: 'off', connectionsMax: 4 } as const;
const [one, two] = [await openPostgres(url, options), await openPostgres(url, options)];
after(async () => {
  await one[Symbol.asyncDispose]();
  await two[Symbol.asyncDispose]();
});
const [store, second] = [one.breakers, two.breakers];
// Both create the table concurrently, like processes that start at the same time.
await Promise.all([store.list(), second.list()]);

for (const { name, run } of breakerStoreConformance({ store, second })) {
  test(`breakers in PostgreSQL: ${name}`, run);
}
