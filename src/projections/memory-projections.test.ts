import { after, test } from 'node:test';
import { memoryEventStore } from '../adapters/memory/memory-event-store.ts';
import { projectionsConformance } from './projections.conformance.ts';

const store = memoryEventStore();
after(() => store[Symbol.asyncDispose]());

for (const { name, run } of projectionsConformance({ open: async () => store })) {
  test(`projections in memory: ${name}`, run);
}
