// The store's conformance suite through the official client and our own server, on SQLite.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sqliteEventStore } from '../../src/adapters/sqlite/index.ts';
import { runConformance } from '../../src/store/event-store.conformance.ts';
import { adapterFixture } from './adapter-fixture.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-kurrent-'));
let count = 0;
const fixture = adapterFixture({
  open(options) {
    count += 1;
    return sqliteEventStore(`sqlite:${join(folder, `${count}.db`)}`, options);
  },
});
after(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

runConformance(test, 'the event store in KurrentDB, on our own server over SQLite', fixture);
