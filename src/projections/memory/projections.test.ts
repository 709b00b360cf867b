import { after, test } from 'node:test';
import { memoryEventStore } from '../../engines/memory/memory-event-store.ts';
import { projectionsConformance } from '../../testing/conformance/projections/projections.ts';

const store = memoryEventStore();
after(() => store[Symbol.asyncDispose]());

for (const { name, run } of projectionsConformance({ open: async () => store })) {
  test(`projections in memory: ${name}`, run);
}
