// Which cases of the suite a test run includes.

import { soakMinutes } from '../testing/property-runs.ts';
import type { TasksCase } from '../testing/conformance/tasks/fixture.ts';

/**
 * The suite on an engine with a server: two of the random runs. Memory and SQLite run all of them each
 * time, and so does every engine in the soak.
 */
export function onServer(cases: readonly TasksCase[]): readonly TasksCase[] {
  return soakMinutes > 0 ? cases : cases.filter(({ name }) => !/\(seed [3-9]\)$/.test(name));
}
