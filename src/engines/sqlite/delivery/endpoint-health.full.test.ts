import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { endpointHealthConformance } from '../../../testing/conformance/delivery/endpoint-health.ts';
import { createTempFolder, removeTempFolder } from '../../../testing/servers/temp-folder.ts';
import { sqliteEndpointHealth } from './endpoint-health.ts';

const folder = await createTempFolder('health');
const [one, two] = [1, 2].map(
  () => new DatabaseSync(join(folder, 'health.db'), { timeout: 60_000 }),
) as [DatabaseSync, DatabaseSync];
after(async () => {
  one.close();
  two.close();
  await removeTempFolder(folder);
});

for (const { name, run } of endpointHealthConformance({
  store: sqliteEndpointHealth(one),
  second: sqliteEndpointHealth(two),
})) {
  test(`endpoint health in SQLite: ${name}`, run);
}
