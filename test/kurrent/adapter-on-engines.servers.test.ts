// The conformance suite of the store through the official client and Millrace's server, on durable engines: a part of it
// in `npm test`, all of it in the soak.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { eventStoreConformance } from '../../src/testing/conformance/store/event-store.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { soakMinutes } from '../store/rig.ts';
import { adapterFixture, type Backing } from './adapter-fixture.ts';

const topics = soakMinutes > 0 ? /^/ : /^(?:multi-stream append|closing):/;

const { url } = await sharedPostgres();
const folder = await mkdtemp(join(tmpdir(), 'millrace-kurrent-'));
after(() => rm(folder, { recursive: true }));
let count = 0;

const engines: Readonly<Record<string, Backing>> = {
  SQLite: {
    open(options) {
      count += 1;
      return openSqlite(`sqlite:${join(folder, `${count}.db`)}`, options);
    },
  },
  PostgreSQL: {
    open(options) {
      count += 1;
      const own = { schema: `kurrent_${count}`, connectionsMax: 3, roles: ['store'] } as const;
      return openPostgres(url, { ...options, ...own });
    },
  },
};

for (const [engine, backing] of Object.entries(engines)) {
  const fixture = adapterFixture(backing);
  after(() => fixture[Symbol.asyncDispose]());
  for (const { name, skip, run } of eventStoreConformance(fixture)) {
    if (!topics.test(name)) continue;
    test(
      `KurrentDB on the server of Millrace over ${engine}: ${name}`,
      { skip: skip ?? false },
      ({ signal }) => run(signal),
    );
  }
}
