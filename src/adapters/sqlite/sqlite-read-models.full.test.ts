import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readModelsConformance } from '../../projections/read-models.conformance.ts';
import { sqliteEventStore } from './sqlite-event-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));
const path = join(folder, 'events.db');
const [store, second] = [await sqliteEventStore(path), await sqliteEventStore(path)];
after(async () => {
  await store[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, skip, run } of readModelsConformance({
  capabilities: store.readModels.capabilities,
  open: async () => store.readModels,
  second: async () => second.readModels,
  async closed() {
    const closed = await sqliteEventStore(join(folder, 'closed.db'));
    await closed[Symbol.asyncDispose]();
    return closed.readModels;
  },
})) {
  test(`read models in SQLite: ${name}`, { skip: skip ?? false }, run);
}
