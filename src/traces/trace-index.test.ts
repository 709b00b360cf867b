import { test } from 'node:test';
import { traceIndexConformance } from './trace-index.conformance.ts';
import { memoryTraceIndex } from './trace-index.ts';

for (const { name, run } of traceIndexConformance(async () => memoryTraceIndex())) {
  test(`traces in memory: ${name}`, run);
}
