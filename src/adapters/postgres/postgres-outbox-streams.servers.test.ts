import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { newMessage } from '../../outbox/ledger-fixture.conformance.ts';
import { outboxLedgerConformance } from '../../outbox/outbox-ledger.conformance.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { postgresOutboxFixture } from './postgres-outbox-fixture.conformance.ts';
import { postgresOutboxLedger } from './postgres-outbox-ledger.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 10 });
after(() => pool.end());

test('a transaction whose snapshot is older than the end of stream mode is refused, not lost', async () => {
  const schema = 'outbox_snapshot';
  await using ledger = await postgresOutboxLedger(url, { schema, connectionsMax: 3 });
  await ledger.streams.declare('kafka:x');
  const client = await pool.connect();
  try {
    await client.query('begin isolation level repeatable read');
    await client.query('select 1');
    await ledger.streams.retire('kafka:x');
    const item = newMessage({ integrationType: 'kafka:x' });
    await assert.rejects(() => ledger.enqueueIn(client, [item]), { retryable: true });
    await client.query('rollback');
    assert.equal((await ledger.enqueue(item)).isNew, true);
    assert.equal((await ledger.claimDueBatch('w', 1)).length, 1);
  } finally {
    client.release();
  }
});

test('the mode waits for transactions that have enqueued, and gives up on one that stays open', async () => {
  const schema = 'outbox_switch';
  await using ledger = await postgresOutboxLedger(url, { schema, connectionsMax: 3 });
  const client = await pool.connect();
  try {
    await client.query('begin');
    const item = newMessage({ integrationType: 'kafka:x' });
    await ledger.enqueueIn(client, [item]);
    const settings = await pool.query<{ all: readonly string[] }>(
      `select proconfig as all from pg_proc where oid = '${schema}.stream_declare'::regproc`,
    );
    assert.deepEqual(settings.rows[0]?.all, ['lock_timeout=5s']);
    const giveUpAfter = (time: string): Promise<unknown> =>
      pool.query(`alter function ${schema}.stream_declare set lock_timeout = '${time}'`);
    await giveUpAfter('50ms');
    await assert.rejects(() => ledger.streams.declare('kafka:x'), { code: 'OUTBOX_STREAM_BUSY' });
    await giveUpAfter('1min');
    const again = assert.rejects(() => ledger.streams.declare('kafka:x'), {
      code: 'OUTBOX_STREAM_BUSY',
      // It waits, and then sees what has just been committed, in the other mode.
      details: { integrationType: 'kafka:x', reason: 'waiting' },
    });
    await client.query('commit');
    await again;
    assert.equal((await ledger.claimDueBatch('w', 1)).length, 1);
  } finally {
    client.release();
  }
});

for (const { name, skip, run } of outboxLedgerConformance(postgresOutboxFixture(url, pool))) {
  if (!name.startsWith('stream mode')) continue;
  test(`outbox in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}
