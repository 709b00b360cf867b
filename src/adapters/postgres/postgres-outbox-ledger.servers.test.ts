import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import pg from 'pg';
import { newMessage } from '../../outbox/ledger-fixture.conformance.ts';
import { outboxLedgerConformance } from '../../outbox/outbox-ledger.conformance.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { exchangeSql } from './postgres-outbox-sql.ts';
import { postgresOutboxLedger, type PostgresTransaction } from './postgres-outbox-ledger.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 4 });
after(() => pool.end());

test('a function that runs queries in a transaction of the caller enqueues in it, or not at all', async () => {
  const schema = 'outbox_raw';
  await using ledger = await postgresOutboxLedger(url, { schema, connectionsMax: 3 });
  await pool.query('create table orders (id text primary key)');
  const client = await pool.connect();
  try {
    // As the raw queries of most libraries look: text and values in, rows out.
    const raw = async (text: string, values: readonly unknown[]): Promise<readonly object[]> =>
      (await client.query<object>(text, [...values])).rows;
    const item = newMessage();
    for (const end of ['rollback', 'commit']) {
      await client.query('begin');
      await client.query('insert into orders (id) values ($1)', ['o1']);
      const [answer, again] = await ledger.enqueueIn(raw, [item, item]);
      assert.equal(answer?.isNew, true);
      assert.deepEqual(again, { id: answer.id, isNew: false });
      await client.query(end);
      const { rowCount } = await pool.query('select from orders');
      assert.equal((await ledger.list({})).length, rowCount);
    }
    assert.equal((await ledger.list({})).length, 1);
  } finally {
    client.release();
  }
});

test('claims find their rows by the index of the lane, however many were sent', async () => {
  const schema = 'outbox_plan';
  await using ledger = await postgresOutboxLedger(url, { schema, connectionsMax: 3 });
  await pool.query(`insert into ${schema}.messages (source_stream_id, source_event_id, integration_type,
      event_type, payload, lane)
    select 's', i::text, 'webhook:x', 'e', '{}', i % 64 from generate_series(1, 20000) i`);
  await pool.query(`insert into ${schema}.ready (seq, lane, attempts, starts, due_at)
    select seq, lane, 0, 0, now() from ${schema}.messages`);
  await pool.query(`analyze ${schema}.ready`);
  await pool.query(`analyze ${schema}.messages`);
  const text = exchangeSql.replaceAll('{schema}', schema);
  const lanes = Array.from({ length: 64 }, (_, lane) => lane);
  const client = await pool.connect();
  let plan = '';
  try {
    await client.query('begin');
    const values = [
      [1],
      [7],
      ['sent'],
      [null],
      [null],
      lanes,
      lanes.map(() => 0),
      100,
      1,
      'w',
      60_000,
    ];
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
    plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    await client.query('rollback');
  } finally {
    client.release();
  }
  assert.match(plan, /Index Scan using ready_by_lane/);
  assert.doesNotMatch(plan, /Seq Scan on (ready|messages)/);
  assert.equal((await ledger.claimDueBatch('w', 500)).length, 500);
});

for (const { name, skip, run } of outboxLedgerConformance<PostgresTransaction>({
  capabilities: { durable: true, crossProcess: true, callerTransaction: true },
  async open() {
    const schema = `outbox_${randomUUID().replaceAll('-', '')}`;
    const ledger = await postgresOutboxLedger(url, { schema, connectionsMax: 6 });
    return {
      ledger,
      second: () => postgresOutboxLedger(url, { schema, connectionsMax: 3 }),
      async inTransaction(work) {
        const client = await pool.connect();
        try {
          await client.query('begin');
          await work(client);
          await client.query('commit');
        } catch (error) {
          await client.query('rollback');
          throw error;
        } finally {
          client.release();
        }
      },
      outage: async () => void (await pool.query(`drop table ${schema}.messages cascade`)),
      readRelation: async () =>
        (await pool.query<Record<string, unknown>>(`select * from ${schema}.integration_outbox`))
          .rows,
    };
  },
})) {
  test(`outbox in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}
