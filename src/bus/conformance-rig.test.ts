// Which cases of the suite a run takes.

import type { BusCase } from '../testing/conformance/bus/fixture.ts';

/**
 * The suite on an engine with a server: the model with its first seeds. SQLite takes all seeds
 * each time, and so does every engine in the soak.
 */
export function onServer(cases: readonly BusCase[]): readonly BusCase[] {
  const isSoak = Number(process.env['MILLRACE_SOAK'] ?? 0) > 0;
  return isSoak ? cases : cases.filter(({ name }) => !name.endsWith('(more seeds)'));
}
