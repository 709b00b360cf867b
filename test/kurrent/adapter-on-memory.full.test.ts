// The conformance suite of the store through the official client and Millrace's server, on the memory engine.
// `npm test` runs the cases that stand-in-conformance does not run on a stricter server; the soak runs all of them.
// adapter-on-engines runs a part of the suite on SQLite and PostgreSQL.

import { after, test } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import { eventStoreConformance } from '../../src/testing/conformance/store/event-store.ts';
import { soakMinutes } from '../store/rig.ts';
import { adapterFixture } from './adapter-fixture.ts';
import { largeOnStandIn } from './stand-in-fixture.ts';

const fixture = adapterFixture({ open: async (options) => openMemory(options) });
after(() => fixture[Symbol.asyncDispose]());

for (const { name, skip, run } of eventStoreConformance(fixture)) {
  if (soakMinutes === 0 && !largeOnStandIn.has(name)) continue;
  test(
    `KurrentDB on the server of Millrace in memory: ${name}`,
    { skip: skip ?? false },
    ({ signal }) => run(signal),
  );
}
