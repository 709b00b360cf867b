// The event store conformance suite on servers that speak MongoDB's protocol.

import { test } from 'node:test';
import { MongoClient } from 'mongodb';
import { openMongo } from './index.ts';
import {
  eventStoreConformance,
  runConformance,
  type StoreFixture,
} from '../../testing/conformance/store/event-store.ts';
import type { EventStore, EventStoreOptions, StoreCapabilities } from '../../store/index.ts';
import {
  onFerretdb,
  onGivenMongodb,
  type MongodbTarget,
} from '../../testing/support/mongodb/mongodb-targets.ts';
import { ownedRole } from '../../testing/owned-role.ts';

/** Opens each store in a separate database. */
function fixtureAt(target: MongodbTarget, capabilities: StoreCapabilities): StoreFixture {
  const databases = new WeakMap<EventStore, string>();
  const openAt = async (database: string, options?: EventStoreOptions): Promise<EventStore> => {
    const url = target.url();
    const db = await openMongo(url, { ...options, database, pollIntervalMs: 20 });
    const store = ownedRole(db, 'store');
    databases.set(store, database);
    return store;
  };
  const databaseOf = (store: EventStore): string => databases.get(store) ?? '';
  return {
    capabilities,
    open: (options) => openAt(target.newDatabase(), options),
    async reopen(store, options) {
      await store[Symbol.asyncDispose]();
      return openAt(databaseOf(store), options);
    },
    second: (store, options) => openAt(databaseOf(store), options),
    async rawContent(store) {
      await using client = new MongoClient(target.url());
      const texts: string[] = [];
      for (const collection of await client.db(databaseOf(store)).collections()) {
        texts.push(JSON.stringify(await collection.find().toArray()));
      }
      return texts.join('\n');
    },
  };
}

const durable = { multiStreamAppend: true, callerTransaction: false, durable: true };

onFerretdb('the event store', (target) => {
  const fixture = fixtureAt(target, { ...durable, crossProcess: false });
  // Without change streams, appends of other processes are found by polling.
  const polling = { ...fixture, capabilities: { ...durable, crossProcess: true } };

  // FerretDB scans the whole collection for each query, so each case gets a separate suite and store.
  for (const [index, { name, needs, skip }] of eventStoreConformance(polling).entries()) {
    const isPolled = needs === 'crossProcess';
    const title = isPolled ? `${name} (by polling)` : name;
    test(title, { skip: skip ?? false }, async ({ signal }) => {
      const suite = eventStoreConformance(isPolled ? polling : fixture);
      try {
        await suite[index]?.run(signal);
      } finally {
        await suite.at(-1)?.run();
        await target.dropDatabases();
      }
    });
  }
});

const given = process.env['MILLRACE_TEST_MONGODB'];
// Only a replica set has change streams.
const crossProcess = given !== undefined && (await hasChangeStreams(given));

onGivenMongodb('the event store', (target) => {
  runConformance(test, 'conformance', fixtureAt(target, { ...durable, crossProcess }));
});

async function hasChangeStreams(url: string): Promise<boolean> {
  await using client = new MongoClient(url);
  const { setName, msg } = await client.db('admin').command({ hello: 1 });
  return setName !== undefined || msg === 'isdbgrid';
}
