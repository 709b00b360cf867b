import { openMemory } from '../engines/memory/index.ts';
import { test } from 'node:test';
import { traceIndexConformance } from '../testing/conformance/traces/trace-index.ts';

for (const { name, run } of traceIndexConformance(async () => openMemory().traces)) {
  test(`traces in memory: ${name}`, run);
}
