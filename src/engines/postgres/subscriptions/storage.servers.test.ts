import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { sweepSql } from '../../../subscriptions/sql/storage.ts';
import { newLetter, acquireShard } from '../../../testing/conformance/subscriptions/fixture.ts';
import { subscriptionStorageConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { openPostgres } from '../open-postgres.ts';
import { dialectIn } from '../connection/database.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 3 });
const schema = 'subscriptions';
const db = await openPostgres(url, { schema, connectionsMax: 6 });
const second = await openPostgres(url, { schema, connectionsMax: 3 });
await pool.query('create table effects (key text not null)');
after(async () => {
  await db[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  await pool.end();
});

test('the view dead_letter_queue has the field names of the event flow document', async () => {
  const fence = await acquireShard(db.subscriptions);
  const payload = { text: 'a \u0000 in it', amount: 12.5 };
  const added = newLetter(fence, { attempts: 6, createdAt: '2025-09-30T10:00:00.129Z', payload });
  await db.subscriptions.deadLetters.add(fence, added);
  const { rows } = await pool.query(`select * from ${schema}.dead_letter_queue where "_id" = $1`, [
    added.id,
  ]);
  assert.deepEqual(rows, [
    {
      _id: added.id,
      eventId: added.eventId,
      eventType: added.eventType,
      aggregateId: added.aggregateId,
      payload,
      error: added.error,
      attempts: 6,
      createdAt: new Date('2025-09-30T10:00:00.129Z'),
      status: 'pending',
      replayedAt: null,
      replayedBy: null,
      notes: '',
      handler: added.handler,
      history: added.history,
    },
  ]);
});

test('expired claims are found by their index', async () => {
  const table = `${schema}.processed_events`;
  await pool.query(`insert into ${table} (event_id, handler_name, token, leased_until_ms, expires_at_ms)
    select 'plan-' || i, 'sub:plan:plan:v1', 1, 0, 9e15::bigint + i from generate_series(1, 20000) i`);
  await pool.query(`analyze ${table}`);
  const sql = sweepSql(dialectIn(schema)).replace('?1', '1000');
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain ${sql}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  await pool.query(`delete from ${table} where handler_name = 'sub:plan:plan:v1'`);
  assert.match(plan, /Index Scan using processed_events_by_expiry/);
  assert.match(plan, /Index Cond: \(expires_at_ms <=/);
  assert.doesNotMatch(plan, /Seq Scan/);
});

for (const { name, skip, run } of subscriptionStorageConformance<pg.ClientBase>({
  capabilities: db.subscriptions.capabilities,
  open: async () => db.subscriptions,
  second: async () => second.subscriptions,
  async damage(subscription, json) {
    const change = (sql: string) =>
      pool.query(sql.replace('update ', `update ${schema}.`), [json, subscription]);
    await change(
      'update dead_letters set payload = $1, history = $1, cause = $1 where handler = $2',
    );
    await change('update subscription_waiting set history = $1 where subscription = $2');
    await change('update subscriptions set filter = $1 where name = $2');
  },
  effects: {
    async write(transaction, key) {
      await transaction.query('insert into effects (key) values ($1)', [key]);
    },
    async count(key) {
      const { rows } = await pool.query<{ n: string }>(
        'select count(*) as n from effects where key = $1',
        [key],
      );
      return Number(rows[0]?.n);
    },
  },
})) {
  test(`subscriptions in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}
