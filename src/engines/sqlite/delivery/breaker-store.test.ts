import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { breakerStoreConformance } from '../../../testing/conformance/delivery/breaker-store.ts';
import { createTempFolder, removeTempFolder } from '../../../testing/servers/temp-folder.ts';
import { sqliteBreakerStore } from './breaker-store.ts';

const folder = await createTempFolder('breakers');
const [one, two] = [1, 2].map(
  () => new DatabaseSync(join(folder, 'breakers.db'), { timeout: 60_000 }),
) as [DatabaseSync, DatabaseSync];
after(async () => {
  one.close();
  two.close();
  await removeTempFolder(folder);
});

for (const { name, run } of breakerStoreConformance({
  store: sqliteBreakerStore(one),
  second: sqliteBreakerStore(two),
})) {
  test(`breakers in SQLite: ${name}`, run);
}
