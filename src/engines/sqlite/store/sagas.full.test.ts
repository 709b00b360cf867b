import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sagaIndexConformance } from '../../../testing/conformance/reactors/saga-index.ts';
import { openSqlite } from '../open-sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sagas-'));
const db = await openSqlite(join(folder, 'events.db'));
after(async () => {
  await db[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, run } of sagaIndexConformance(async () => db.sagas)) {
  test(`sagas in SQLite: ${name}`, run);
}
