// The conformance suite of the store through the official client and Millrace's server, on the memory engine.
// `npm test` runs the cases that stand-in-conformance does not run on a stricter server; the soak runs all of them.
// adapter-on-engines runs a part of the suite on SQLite and PostgreSQL.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import { eventStoreConformance } from '../../src/testing/conformance/store/event-store.ts';
import { soakMinutes } from '../store/rig.ts';
import { adapterFixture } from './adapter-fixture.ts';
import { slowOnStandIn, standInFixture } from './stand-in-fixture.ts';

/** Larger variants of cases that run here; the engines and the soak run them. */
const large = new Set([
  // adapter-foreign has it with more events than one scan of the server takes.
  'subscribe: a filter that matches nothing still reports its progress',
  'subscribe concurrently: delivers every event once while thirty-two writers share streams',
  'subscribe concurrently: delivers every event once when it repeatedly stops and resumes from its last position',
]);

await using standIn = standInFixture('23.10');
const onStandIn = new Set(
  eventStoreConformance(standIn)
    .filter(({ name, skip }) => skip === undefined && !slowOnStandIn.has(name))
    .map(({ name }) => name),
);

const fixture = adapterFixture({ open: async (options) => openMemory(options) });
after(() => fixture[Symbol.asyncDispose]());

const cases = eventStoreConformance(fixture);
for (const { name, skip, run } of cases) {
  if (soakMinutes === 0 && (large.has(name) || onStandIn.has(name))) continue;
  test(
    `KurrentDB on the server of Millrace in memory: ${name}`,
    { skip: skip ?? false },
    ({ signal }) => run(signal),
  );
}

test('every case that is left out exists', () => {
  const names = new Set(cases.map(({ name }) => name));
  assert.deepEqual(
    [...large].filter((name) => !names.has(name)),
    [],
  );
});
