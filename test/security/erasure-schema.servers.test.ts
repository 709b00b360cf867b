// The tables of PostgreSQL and the streams of NATS are classified in tools/erasure-table.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '@nats-io/transport-node';
import { Client } from 'pg';
import { openNats } from '../../src/engines/nats/open-nats.ts';
import { openPostgres } from '../../src/engines/postgres/open-postgres.ts';
import { createTasks } from '../../src/tasks/create-tasks.ts';
import { taskType } from '../../src/tasks/task-type.ts';
import { sharedNats, sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { classified } from './erasure-classified.ts';

test('every table of PostgreSQL is classified', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url);
  await db.store.head();
  await db.outbox.counts();
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const schema of ['millrace', 'core_outbox'] as const) {
      const { rows } = await client.query<{ readonly tablename: string }>(
        'select tablename from pg_catalog.pg_tables where schemaname = $1',
        [schema],
      );
      const tables = rows.map(({ tablename }) => tablename).toSorted();
      assert.deepEqual(tables, classified(`PostgreSQL: schema ${schema}`));
    }
  } finally {
    await client.end();
  }
});

test('every stream and bucket of NATS is classified', async () => {
  const { url, prefix } = await sharedNats();
  await using nats = await openNats(url, { prefix });
  await nats.bus.publish({ subject: 'gbe.events.system.health', payload: {} });
  await using tasks = createTasks(nats.tasks, { types: [taskType('email-send')] });
  await tasks.enqueue({ type: 'email-send', payload: {} });
  await nats.leases.acquire({ subscription: 'sub:a:b:v1', shard: 0 }, 'me', 1_000);
  const connection = await connect({ servers: url });
  try {
    const reply = await connection.request('$JS.API.STREAM.NAMES');
    const { streams } = reply.json<{ readonly streams: readonly string[] }>();
    const own = streams.filter((name) => name.includes(prefix));
    assert.equal(own.length, 3);
    const known = classified('NATS: streams and buckets');
    for (const name of own) assert.ok(known.includes(name.replace(prefix, 'millrace')), name);
  } finally {
    await connection.close();
  }
});
