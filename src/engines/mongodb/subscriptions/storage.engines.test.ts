// Subscriptions on servers that speak MongoDB's protocol. FerretDB has no transactions and no TTL indexes, and its updates
// are not atomic: only a real replica set shows those.

import { after, test } from 'node:test';
import { MongoClient, type ClientSession } from 'mongodb';
import { subscriptionStorageConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import {
  onFerretdb,
  onGivenMongodb,
  type MongodbTarget,
} from '../../../testing/support/mongodb/mongodb-targets.ts';
import { openMongo, type MongoEngine } from '../index.ts';

function storageCases(target: MongodbTarget, hasTransactions: boolean): void {
  let engine: MongoEngine | undefined;
  let client: MongoClient | undefined;
  const database = target.newDatabase();
  const clientOf = (): MongoClient => (client ??= new MongoClient(target.url()));
  const effects = () => clientOf().db(database).collection<{ key: string }>('effects');
  const open = async () => {
    // A session belongs to its client.
    engine ??= await openMongo(clientOf(), { database });
    return engine.subscriptions;
  };
  after(async () => {
    await engine?.[Symbol.asyncDispose]();
    await client?.close();
  });
  const cases = subscriptionStorageConformance<ClientSession>({
    capabilities: { transactions: hasTransactions, durable: true, crossProcess: true },
    open,
    second: open,
    effects: {
      async write(session, key) {
        await effects().insertOne({ key }, { session });
      },
      count: (key) => effects().countDocuments({ key }),
    },
  });
  for (const { name, skip, run } of cases) test(name, { skip: skip ?? false }, run);
}

onFerretdb('subscriptions', (target) => storageCases(target, false));

/** `MILLRACE_TEST_MONGODB` with `replicaSet` in its URL has transactions. */
onGivenMongodb('subscriptions', (target) =>
  storageCases(target, /[?&]replicaSet=|^mongodb\+srv:/.test(target.url())),
);
