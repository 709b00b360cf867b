// Leases in Redis or NATS fence the writes to SQLite or PostgreSQL.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { ClientBase } from 'pg';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openSqlite, type SqliteTransaction } from '../../src/engines/sqlite/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { toPosition } from '../../src/store/position.ts';
import { startSubscription, subscription, withLeases } from '../../src/subscriptions/index.ts';
import { subscriptionStorageConformance } from '../../src/testing/conformance/subscriptions/subscription-storage.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import {
  sharedNats,
  sharedPostgres,
  sharedRedis,
} from '../../src/testing/servers/shared-servers.ts';
import { connect } from '../store/connect.ts';
import { createWorkspace, newEvent, streamName, until } from '../store/rig.ts';
import { commandRedis } from './command-redis.ts';

const workspace = await createWorkspace();
const file = join(workspace.folder, 'events.db');
const [sqlite, sqliteAgain] = [await openSqlite(file), await openSqlite(file)];
const { url } = await sharedPostgres();
const postgres = await openPostgres(url, { connectionsMax: 6 });
const postgresAgain = await openPostgres(url, { connectionsMax: 3 });
const database = new DatabaseSync(file, { timeout: 10_000 });
database.exec('create table effects (key text not null)');
const admin = await connect(url);
await admin.query('create table effects (key text not null)');
const redisUrl = (await sharedRedis()).url;
const natsUrl = (await sharedNats()).url;
const leases = {
  redis: [await openRole(redisUrl, 'leases'), await openRole(redisUrl, 'leases')],
  nats: [await openRole(natsUrl, 'leases'), await openRole(natsUrl, 'leases')],
} as const;
after(async () => {
  database.close();
  await admin.end();
  const open = [sqlite, sqliteAgain, postgres, postgresAgain, ...leases.redis, ...leases.nats];
  for (const each of open) await each[Symbol.asyncDispose]();
  await workspace[Symbol.asyncDispose]();
});

for (const { name, skip, run } of subscriptionStorageConformance<SqliteTransaction>({
  capabilities: sqlite.subscriptions.capabilities,
  open: async () => withLeases(sqlite.subscriptions, leases.redis[0]),
  second: async () => withLeases(sqliteAgain.subscriptions, leases.redis[1]),
  effects: {
    async write(transaction, key) {
      transaction.run('insert into effects (key) values (?)', key);
    },
    count: async (key) =>
      Number(database.prepare('select count(*) as n from effects where key = ?').get(key)?.['n']),
  },
})) {
  test(`subscriptions in SQLite, leases in Redis: ${name}`, { skip: skip ?? false }, run);
}

for (const { name, skip, run } of subscriptionStorageConformance<ClientBase>({
  capabilities: postgres.subscriptions.capabilities,
  open: async () => withLeases(postgres.subscriptions, leases.nats[0]),
  second: async () => withLeases(postgresAgain.subscriptions, leases.nats[1]),
  effects: {
    async write(transaction, key) {
      await transaction.query('insert into effects (key) values ($1)', [key]);
    },
    async count(key) {
      const { rows } = await admin.query('select 1 from effects where key = $1', [key]);
      return rows.length;
    },
  },
})) {
  test(`subscriptions in PostgreSQL, leases in NATS: ${name}`, { skip: skip ?? false }, run);
}

test('after the lease server lost its data, only the new owner can write', async () => {
  await using server = await startRedis();
  await using kept = await openRole(server.url, 'leases');
  const storage = withLeases(sqlite.subscriptions, kept);
  const key = { subscription: 'sub:rig:forgetful:v1', shard: 0 };
  await storage.checkpoints.open(key.subscription, 1);
  const owners: { readonly token: number }[] = [];
  for (const owner of ['a', 'b', 'c']) {
    const lease = await storage.leases.acquire(key, owner, 60_000);
    assert.ok(lease.kind === 'acquired', owner);
    owners.push(lease);
    // An emptied server would start its tokens at 1 again.
    await commandRedis(server.port, 'FLUSHALL');
  }
  const [first, second, third] = owners.map(({ token }) => ({ ...key, token }));
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  assert.ok(first.token < second.token && second.token < third.token);
  await storage.checkpoints.save(third, toPosition(5));
  for (const late of [first, second]) {
    const isLost = (error: unknown): boolean => hasCode(error, 'LEASE_LOST');
    await assert.rejects(() => storage.checkpoints.save(late, toPosition(9)), isLost);
    const positions = [toPosition(7)];
    await assert.rejects(() => storage.settle(late, { kind: 'delivered', positions }), isLost);
    assert.equal(await storage.leases.renew(late, 60_000), false);
  }
  assert.equal((await storage.checkpoints.load(key)).position, toPosition(5));
});

test('two independent lease servers never let two owners write with the same token', async () => {
  const key = { subscription: 'sub:rig:twins:v1', shard: 0 };
  await using server = await startRedis();
  await using other = await startRedis();
  await using a = await openRole(server.url, 'leases');
  await using b = await openRole(other.url, 'leases');
  const storages = [a, b].map((each) => withLeases(postgres.subscriptions, each));
  await postgres.subscriptions.checkpoints.open(key.subscription, 1);
  const results = await Promise.all(
    storages.map((storage, index) => storage.leases.acquire(key, `o${index}`, 60_000)),
  );
  const acquired = results.flatMap((each) => (each.kind === 'acquired' ? [each.token] : []));
  assert.ok(acquired.length >= 1);
  assert.equal(new Set(acquired).size, acquired.length);
});

test('an idle owner notices a reset by another process', async () => {
  const stream = streamName('reset');
  await sqlite.store.append(stream, [newEvent('reset-1')]);
  let handled = 0;
  const definition = subscription({
    name: 'sub:rig:reset:v1',
    filter: { streamPrefixes: [stream] },
    handler: () => void (handled += 1),
  });
  const { store, subscriptions } = sqlite;
  const roles = { store, subscriptions, leases: leases.redis[0] };
  await using runner = await startSubscription(roles, definition, { leaseMs: 1_500 });
  await runner.whenCaughtUp();
  assert.equal(handled, 1);
  // A direct reset, as by another process, does not wake the owner.
  const { checkpoints } = subscriptions;
  await checkpoints.reset(definition.name, toPosition(0), { by: 'ada', atMs: Date.now() });
  await until('the event is handled again', () => handled === 2);
});
