import { test } from 'node:test';
import { sagaIndexConformance } from '../testing/conformance/reactors/saga-index.ts';
import { memorySagaIndex } from '../testing/support/reactors/memory-saga-index.ts';

for (const { name, run } of sagaIndexConformance(async () => memorySagaIndex(), { upkeep: true })) {
  test(`sagas in memory: ${name}`, run);
}
