import { after, test } from 'node:test';
import { openMemory } from './index.ts';
import { projectionsConformance } from '../../testing/conformance/projections/projections.ts';

const db = openMemory();
after(() => db[Symbol.asyncDispose]());

for (const { name, run } of projectionsConformance({ open: async () => db })) {
  test(`projections in memory: ${name}`, run);
}
