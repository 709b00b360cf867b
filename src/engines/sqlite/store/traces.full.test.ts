import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { traceIndexConformance } from '../../../testing/conformance/traces/trace-index.ts';
import { sqliteEventStore } from './event-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-traces-'));
const store = await sqliteEventStore(join(folder, 'events.db'));
after(async () => {
  await store[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, run } of traceIndexConformance(async () => store.traces)) {
  test(`traces in SQLite: ${name}`, run);
}
