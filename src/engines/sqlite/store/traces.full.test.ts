import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { traceIndexConformance } from '../../../testing/conformance/traces/trace-index.ts';
import { openSqlite } from '../open-sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-traces-'));
const db = await openSqlite(join(folder, 'events.db'));
after(async () => {
  await db[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, run } of traceIndexConformance(async () => db.traces)) {
  test(`traces in SQLite: ${name}`, run);
}
