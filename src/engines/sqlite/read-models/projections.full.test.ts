import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { projectionsConformance } from '../../../testing/conformance/projections/projections.ts';
import { sqliteEventStore } from '../store/event-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));
const store = await sqliteEventStore(join(folder, 'events.db'));
after(async () => {
  await store[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, run } of projectionsConformance({ open: async () => store })) {
  test(`projections in SQLite: ${name}`, run);
}
