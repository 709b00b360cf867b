import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { newMessage } from '../../../testing/conformance/outbox/fixture.ts';
import type { OutboxOutcome } from '../../../outbox/outbox-ledger.ts';
import { outboxLedgerConformance } from '../../../testing/conformance/outbox/outbox-ledger.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { postgresOutboxFixture } from '../../../testing/conformance/engines/postgres-outbox.ts';
import { openPostgres } from '../open-postgres.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 10 });
after(() => pool.end());

test('a query function of a transaction enqueues in that transaction', async () => {
  const schema = 'outbox_raw';
  await using db = await openPostgres(url, { outboxSchema: schema, connectionsMax: 3 });
  const ledger = db.outbox;
  await pool.query('create table orders (id text primary key)');
  const client = await pool.connect();
  try {
    // The raw queries of most libraries take SQL and values and return rows.
    const raw = async (text: string, values: readonly unknown[]): Promise<readonly object[]> =>
      (await client.query<object>(text, [...values])).rows;
    const item = newMessage();
    for (const end of ['rollback', 'commit']) {
      await client.query('begin');
      await client.query('insert into orders (id) values ($1)', ['o1']);
      const [first, second] = await ledger.enqueueIn(raw, [item, item]);
      assert.equal(first?.isDuplicate, false);
      assert.deepEqual(second, { id: first.id, isDuplicate: true });
      await client.query(end);
      const { rowCount } = await pool.query('select from orders');
      assert.equal((await ledger.list({})).length, rowCount);
    }
    assert.equal((await ledger.list({})).length, 1);
  } finally {
    client.release();
  }
});

test('claims use the index of the lanes even if the statistics show an empty queue', async () => {
  const schema = 'outbox_plan';
  // One session, so that its statistics can be flushed.
  const one = new pg.Pool({ connectionString: url, max: 1 });
  await using db = await openPostgres(one, { outboxSchema: schema, roles: ['outbox'] });
  const ledger = db.outbox;
  await pool.query(`analyze ${schema}.ready`);
  await pool.query(`insert into ${schema}.messages (source_stream_id, source_event_id, integration_type,
      event_type, payload, lane)
    select 's', i::text, 'webhook:x', 'e', '{}', i % 2 from generate_series(1, 20000) i`);
  await pool.query(`insert into ${schema}.ready (seq, lane, attempts, starts, due_at)
    select seq, lane, 0, 0, now() from ${schema}.messages`);
  const scans = async (): Promise<number> => {
    await one.query('select pg_stat_force_next_flush()');
    const { rows } = await one.query<{ rows: string }>(
      `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as rows
       from pg_stat_user_tables where schemaname = $1 and relname = 'ready'`,
      [schema],
    );
    return Number(rows[0]?.rows);
  };
  const before = await scans();
  let outcomes: OutboxOutcome[] = [];
  for (let round = 0; round < 20; round += 1) {
    await ledger.settle(outcomes);
    const claimed = await ledger.claimDueBatch('w', 100, { leaseMs: 60_000 });
    assert.equal(claimed.length, 100);
    outcomes = claimed.map((each) => ({ kind: 'sent', claim: each }));
  }
  // 20 batches of 100: a scan of the queue reads ten times as many rows in a single one of them.
  const read = (await scans()) - before;
  await one.end();
  assert.ok(read >= 2_000 && read < 40_000, `${read} rows were read`);
});

for (const { name, skip, run } of outboxLedgerConformance(postgresOutboxFixture(url, pool))) {
  test(`outbox in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}
