import { soakMinutes } from '../../property-runs.ts';
import type { BusCase } from '../../conformance/bus/fixture.ts';

/** The suite for an engine with a server: without the additional model seeds, which run on SQLite and in the soak. */
export function onServer(cases: readonly BusCase[]): readonly BusCase[] {
  return soakMinutes > 0 ? cases : cases.filter(({ name }) => !name.endsWith('(more seeds)'));
}
