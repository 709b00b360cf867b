// The store's conformance suite through the official client and our own server, on PostgreSQL.

import { after, test } from 'node:test';
import { postgresEventStore } from '../../src/adapters/postgres/index.ts';
import { runConformance } from '../../src/store/event-store.conformance.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { adapterFixture } from './adapter-fixture.ts';

const { url } = await sharedPostgres();
let count = 0;
const fixture = adapterFixture({
  open(options) {
    count += 1;
    return postgresEventStore(url, { ...options, schema: `kurrent_${count}`, connectionsMax: 3 });
  },
});
after(() => fixture[Symbol.asyncDispose]());

runConformance(test, 'the event store in KurrentDB, on our own server over PostgreSQL', fixture);
