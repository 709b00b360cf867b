// Benchmark of the bus: the cost of reading five hundred streams by one pattern, on every engine.

import type { Benchmark } from './benchmark.ts';
import { createBusTargets } from './bus/bus-targets.ts';
import { wildcardCases } from './bus/wildcard-cases.ts';

export const benchmark: Benchmark = {
  name: 'bus',
  peers: [],
  url: import.meta.url,
  secondsPerSubject: 8,
  cases: (context) => wildcardCases(createBusTargets(context), context),
};
