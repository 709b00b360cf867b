import { test } from 'node:test';
import { breakerStoreConformance } from '../testing/conformance/delivery/breaker-store.ts';
import { memoryBreakerStore } from './breaker-store.ts';

for (const { name, run } of breakerStoreConformance({ store: memoryBreakerStore() })) {
  test(`breakers in memory: ${name}`, run);
}
