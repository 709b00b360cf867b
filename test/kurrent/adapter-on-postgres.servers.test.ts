// Through the official client and our own server on PostgreSQL: those topics of the store's suite whose
// answers come from the store behind the server. The whole suite runs on SQLite, next door.

import { after, test } from 'node:test';
import { postgresEventStore } from '../../src/adapters/postgres/index.ts';
import { eventStoreConformance } from '../../src/store/event-store.conformance.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { soakMinutes } from '../store/rig.ts';
import { adapterFixture } from './adapter-fixture.ts';

const topics =
  soakMinutes > 0
    ? /^(?:(?:idempotent |multi-stream )?append|read all|subscribe(?: to a stream)?|closing):/
    : /^(?:(?:idempotent |multi-stream )?append|closing):/;

const { url } = await sharedPostgres();
let count = 0;
const fixture = adapterFixture({
  open(options) {
    count += 1;
    return postgresEventStore(url, { ...options, schema: `kurrent_${count}`, connectionsMax: 3 });
  },
});
after(() => fixture[Symbol.asyncDispose]());

for (const { name, skip, run } of eventStoreConformance(fixture)) {
  if (!topics.test(name)) continue;
  test(`KurrentDB on our own server over PostgreSQL: ${name}`, { skip: skip ?? false }, (context) =>
    run(context.signal),
  );
}
