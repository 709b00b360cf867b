// The cases of a benchmark and their shared resources, which are closed after the last case.

import type { Benchmark, BenchmarkContext, Case } from './benchmark.ts';

export interface OpenedCases extends AsyncDisposable {
  readonly cases: readonly Case[];
}

export async function openCases(
  benchmark: Benchmark,
  context: Omit<BenchmarkContext, 'defer'>,
): Promise<OpenedCases> {
  await using releases = new AsyncDisposableStack();
  const cases = await benchmark.cases({
    ...context,
    defer: (release) => releases.defer(async () => release()),
  });
  const resources = releases.move();
  return { cases, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}
