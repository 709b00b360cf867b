// The KurrentDB adapter on a given server, which may contain events of others: the conformance suite, other clients,
// restarts and a scavenge. Prints a table of the results. CONTRIBUTING.md describes the environment variables.

import { after, describe, test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import {
  eventStoreConformance,
  type StoreFixture,
} from '../../src/testing/conformance/store/event-store.ts';
import { connectForeign, foreignCases } from '../kurrent/foreign-cases.ts';
import { recoveryCases } from '../kurrent/recovery-cases.ts';
import { scavengeCases } from '../kurrent/scavenge-cases.ts';
import { controlOf, killable } from './kurrentdb-control.ts';
import { recordResults, resultTable } from './kurrentdb-table.ts';
import { openedNow } from './opened-now.ts';

const url = process.env['MILLRACE_TEST_KURRENTDB'];
const command = process.env['MILLRACE_TEST_KURRENTDB_CONTROL'];
const title = 'KurrentDB of MILLRACE_TEST_KURRENTDB';

if (url === undefined) {
  test(title, { skip: 'MILLRACE_TEST_KURRENTDB is not set' });
} else {
  const fixture = await fixtureAt(url);
  const foreign = await connectForeign({ url });
  after(() => foreign[Symbol.asyncDispose]());
  recordResults();
  describe(`${title}: conformance`, () => {
    for (const { name, skip, run } of eventStoreConformance(fixture)) {
      test(name, { skip: skip ?? false }, ({ signal }) => run(signal));
    }
  });
  describe(`${title}: other clients`, () => foreignCases(foreign));
  if (command === undefined) {
    test(`${title}: restarts`, { skip: 'MILLRACE_TEST_KURRENTDB_CONTROL is not set' });
  } else {
    const control = controlOf(command);
    describe(`${title}: restarts`, () => recoveryCases(async () => killable(url, control)));
    describe(`${title}: scavenge`, () =>
      scavengeCases(async () => ({ url, scavenge: () => control.run('scavenge') })));
  }
  test(`${title}: results`, (context) => context.diagnostic(resultTable()));
}

async function fixtureAt(target: string): Promise<StoreFixture> {
  await using first = await openKurrent(target);
  return {
    isShared: true,
    capabilities: first.store.capabilities,
    open: async (options) => openedNow(await openKurrent(target, options)),
    async reopen(store, options) {
      await store[Symbol.asyncDispose]();
      return openedNow(await openKurrent(target, options), store);
    },
    second: async (store, options) => openedNow(await openKurrent(target, options), store),
  };
}
