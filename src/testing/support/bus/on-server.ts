import type { BusCase } from '../../conformance/bus/fixture.ts';

/** The suite for an engine with a server: without the additional model seeds, which run on SQLite and in the soak. */
export function onServer(cases: readonly BusCase[]): readonly BusCase[] {
  const isSoak = Number(process.env['MILLRACE_SOAK'] ?? 0) > 0;
  return isSoak ? cases : cases.filter(({ name }) => !name.endsWith('(more seeds)'));
}
