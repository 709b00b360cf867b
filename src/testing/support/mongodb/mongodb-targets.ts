// The available servers that speak MongoDB's protocol; each test title names its server.

import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { ferretdbProgram, startFerretdb, type FerretdbServer } from './ferretdb-server.ts';

export interface MongodbTarget {
  url(): string;
  /** Returns the name of an empty database, which is removed after the tests. */
  newDatabase(): string;
  /** Drops all databases that `newDatabase` created. */
  dropDatabases(): Promise<void>;
  /** Undefined for a server that the tests did not start. */
  readonly server: () => FerretdbServer | undefined;
}

/** Registers the tests once for each server, or one skipped test that says what is missing. */
export function onEachMongodb(what: string, register: (target: MongodbTarget) => void): void {
  onFerretdb(what, register);
  onGivenMongodb(what, register);
}

export function onFerretdb(what: string, register: (target: MongodbTarget) => void): void {
  const title = `${what}, on FerretDB 1.24, not MongoDB`;
  const program = ferretdbProgram();
  if (program === undefined) {
    test(title, { skip: 'FerretDB was not downloaded: npm run test:engines' });
    return;
  }
  describe(title, () => {
    let server: FerretdbServer | undefined;
    before(async () => {
      server = await startFerretdb(program);
    });
    after(() => server?.[Symbol.asyncDispose]());
    register(
      targetAt(
        () => server?.url ?? '',
        () => server,
      ),
    );
  });
}

export function onGivenMongodb(what: string, register: (target: MongodbTarget) => void): void {
  const title = `${what}, on the MongoDB of MILLRACE_TEST_MONGODB`;
  const url = process.env['MILLRACE_TEST_MONGODB'];
  if (url === undefined) {
    test(title, { skip: 'MILLRACE_TEST_MONGODB is not set' });
    return;
  }
  describe(title, () => {
    const target = targetAt(
      () => url,
      () => undefined,
    );
    after(() => target.dropDatabases());
    register(target);
  });
}

function targetAt(url: () => string, server: MongodbTarget['server']): MongodbTarget {
  const databases = new Set<string>();
  return {
    url,
    server,
    newDatabase() {
      const database = `millrace_${randomUUID().replaceAll('-', '')}`;
      databases.add(database);
      return database;
    },
    async dropDatabases() {
      const client = new MongoClient(url());
      for (const database of databases) await client.db(database).dropDatabase();
      databases.clear();
      await client.close();
    },
  };
}
