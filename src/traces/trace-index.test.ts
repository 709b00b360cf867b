import { test } from 'node:test';
import { traceIndexConformance } from '../testing/conformance/traces/trace-index.ts';
import { memoryTraceIndex } from './trace-index.ts';

for (const { name, run } of traceIndexConformance(async () => memoryTraceIndex())) {
  test(`traces in memory: ${name}`, run);
}
