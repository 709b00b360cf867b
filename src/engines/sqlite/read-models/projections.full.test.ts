import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { projectionsConformance } from '../../../testing/conformance/projections/projections.ts';
import { openSqlite } from '../open-sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));
const db = await openSqlite(join(folder, 'events.db'));
after(async () => {
  await db[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, run } of projectionsConformance({ open: async () => db })) {
  test(`projections in SQLite: ${name}`, run);
}
