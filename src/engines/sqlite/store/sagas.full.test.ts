import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sagaIndexConformance } from '../../../testing/conformance/reactors/saga-index.ts';
import { sqliteEventStore } from './event-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sagas-'));
const store = await sqliteEventStore(join(folder, 'events.db'));
after(async () => {
  await store[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, run } of sagaIndexConformance(async () => store.sagas)) {
  test(`sagas in SQLite: ${name}`, run);
}
