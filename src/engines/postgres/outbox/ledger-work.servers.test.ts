// Measures the work of a claim in blocks and the size of the ledger in bytes. Both are independent of the machine.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { newMessage } from '../../../testing/conformance/outbox/fixture.ts';
import type { OutboxLedger, OutboxOutcome } from '../../../outbox/outbox-ledger.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { startPostgres } from '../../../testing/servers/postgres-server.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openPostgres } from '../open-postgres.ts';
import { bySourceSql, listSql, purgeSql } from './queries.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 4 });
after(() => pool.end());

const perClaim = 100;
const future = new Date('2100-01-01');

/** A pool of one session, so that its statistics can be flushed. */
const one = new pg.Pool({ connectionString: url, max: 1 });
after(() => one.end());

/** A clock that stands still: floors are not forgotten during a measurement. */
async function open(outboxSchema: string, on = one) {
  const options = { outboxSchema, roles: ['outbox'], clock: fakeClock() } as const;
  return ownedRole(await openPostgres(on, options), 'outbox');
}

async function enqueue(ledger: OutboxLedger, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1_000) {
    const size = Math.min(1_000, count - at);
    const items = Array.from({ length: size }, (_, index) =>
      newMessage({ tenantId: `t${index % 20}` }),
    );
    await ledger.enqueueMany(items);
  }
}

async function drain(ledger: OutboxLedger, claims: number): Promise<void> {
  let outcomes: OutboxOutcome[] = [];
  for (let done = 0; done < claims; done += 1) {
    await ledger.settle(outcomes);
    const claimed = await ledger.claimDueBatch('w', perClaim);
    assert.equal(claimed.length, perClaim);
    outcomes = claimed.map((claim) => ({ kind: 'sent', claim }));
  }
  await ledger.settle(outcomes);
}

/** Blocks of the queue and its indexes that the session has read. */
async function blocksOf(schema: string): Promise<number> {
  await one.query('select pg_stat_force_next_flush()');
  const { rows } = await pool.query<{ blocks: string }>(
    `select heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read as blocks
     from pg_statio_user_tables where schemaname = $1 and relname = 'ready'`,
    [schema],
  );
  return Number(rows[0]?.blocks);
}

async function blocksOfDraining(schema: string, ledger: OutboxLedger): Promise<number> {
  await enqueue(ledger, 1_000);
  const before = await blocksOf(schema);
  await drain(ledger, 10);
  return (await blocksOf(schema)) - before;
}

test('a claim scans neither settled nor delayed rows, nor rows that an old snapshot keeps', async () => {
  await using fresh = await open('work_fresh');
  await enqueue(fresh, 500);
  await drain(fresh, 5);
  const expected = await blocksOfDraining('work_fresh', fresh);

  await using ledger = await open('work_held');
  const snapshot = await pool.connect();
  try {
    await snapshot.query('begin isolation level repeatable read');
    await snapshot.query('select count(*) from work_held.ready');
    await enqueue(ledger, 6_000);
    await drain(ledger, 40);
    const rest = await ledger.claimDueBatch('w', 2_000);
    const nextDueAt = future;
    await ledger.settle(
      rest.map((claim, at) =>
        at % 2 === 0
          ? { kind: 'dead', claim, error: 'no' }
          : { kind: 'failed', claim, error: 'no', nextDueAt },
      ),
    );
    const counts = await ledger.counts();
    assert.deepEqual([counts.SENT, counts.DEAD, counts.FAILED], [4_000, 1_000, 1_000]);
    // The first claim after an idle period scans everything once.
    await enqueue(ledger, 100);
    await drain(ledger, 1);
    const blocks = await blocksOfDraining('work_held', ledger);
    assert.ok(blocks < 1.5 * expected, `${blocks} blocks, ${expected} in a fresh ledger`);
  } finally {
    await snapshot.query('rollback');
    snapshot.release();
  }
});

test('a page of all and of sent messages is read by the key, whatever the number of messages', async () => {
  await using ledger = await open('work_pages');
  assert.deepEqual(await ledger.list({}), []);
  await pool.query(
    `with new as (insert into work_pages.messages
         (source_stream_id, source_event_id, integration_type, event_type, payload, lane)
         select 's', n, 'webhook:x', 'a.b.v1', '{}', 0 from generate_series(1, 20000) n returning seq)
       insert into work_pages.sent (seq, attempts, sent_at) select seq, 0, now() from new`,
  );
  await pool.query('analyze work_pages.messages, work_pages.sent');
  const { rows: middle } = await pool.query<{ id: string }>(
    'select id from work_pages.messages where seq = 10000',
  );
  for (const status of [undefined, 'SENT'] as const) {
    for (const last of [null, middle[0]?.id]) {
      const sql = listSql(status, false).replaceAll('{schema}', 'work_pages');
      const values = [null, status ?? null, null, null, null, last, 100, 524_288];
      const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
        `explain (costs off) ${sql}`,
        values,
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      assert.match(plan, /Index (Only )?Scan Backward/, plan);
      assert.doesNotMatch(plan, /Seq Scan on (messages|sent)/, plan);
    }
  }
});

test('the messages of events are found without their payloads', async () => {
  await using ledger = await open('work_heads');
  assert.deepEqual(await ledger.list({}), []);
  const sql = bySourceSql.replaceAll('{schema}', 'work_heads');
  const { fields } = await pool.query(sql, ['[]', 1]);
  const names = new Set(fields.map(({ name }) => name));
  assert.ok(names.has('source_event_id'));
  assert.ok(!names.has('payload') && !names.has('headers'));
});

test('a message freed by a settlement is claimed next, even below the floor of its lane', async () => {
  await using ledger = await open('work_order');
  const [, second] = await ledger.enqueueMany([
    newMessage({ orderingKey: 'k' }),
    newMessage({ orderingKey: 'k' }),
    ...Array.from({ length: 400 }, () => newMessage()),
  ]);
  const claimed = await ledger.claimDueBatch('w', perClaim);
  await ledger.claimDueBatch('w', perClaim);
  const first = claimed.find(({ orderingKey }) => orderingKey === 'k') ?? assert.fail();
  await ledger.settle([{ kind: 'sent', claim: first }]);
  const next = await ledger.claimDueBatch('w', perClaim);
  assert.ok(next.some(({ id }) => id === second?.id));
  const [released = assert.fail()] = next;
  await ledger.release(released);
  const last = await ledger.claimDueBatch('w', 1);
  assert.deepEqual(
    last.map(({ id }) => id),
    [released.id],
  );
});

test('a settlement finds its rows by primary key', async () => {
  await using ledger = await open('work_settle');
  // With statistics of an empty queue the planner would prefer a sequential scan.
  await pool.query('vacuum analyze work_settle.ready');
  const few = await blocksOfSettling('work_settle', ledger);
  await enqueue(ledger, 4_000);
  const many = await blocksOfSettling('work_settle', ledger);
  assert.ok(many < 1.5 * few, `${many} blocks in a long queue, ${few} in a short one`);
});

async function blocksOfSettling(schema: string, ledger: OutboxLedger): Promise<number> {
  await enqueue(ledger, perClaim);
  const claimed = await ledger.claimDueBatch('w', perClaim);
  const before = await blocksOf(schema);
  await ledger.settle(claimed.map((claim) => ({ kind: 'sent', claim })));
  return (await blocksOf(schema)) - before;
}

test('a server process killed during a settlement settles nothing, and a retry settles everything', async () => {
  const schema = 'work_killed';
  await using ledger = await open(schema);
  const keys = [{ orderingKey: 'k' }, { orderingKey: 'k' }, {}, {}];
  await ledger.enqueueMany(keys.map((key) => newMessage(key)));
  const claimed = await ledger.claimDueBatch('w', 10, { leaseMs: 600_000 });
  assert.equal(claimed.length, 3);
  const outcomes = claimed.map((claim): OutboxOutcome => ({ kind: 'sent', claim }));
  const holder = await pool.connect();
  try {
    // The settlement has deleted the queue rows and waits to insert the sent rows.
    await holder.query('begin');
    await holder.query(`lock table ${schema}.sent in exclusive mode`);
    const settling = assert.rejects(ledger.settle(outcomes), { code: 'STORE_UNAVAILABLE' });
    let killed = 0;
    while (killed === 0) {
      const { rowCount } = await pool.query(
        `select pg_terminate_backend(l.pid) from pg_locks l
         where not l.granted and l.relation = '${schema}.sent'::regclass`,
      );
      killed = rowCount ?? 0;
    }
    await settling;
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  assert.deepEqual(await ledger.claimDueBatch('w', 10), []);
  const { CLAIMED, PENDING, SENT } = await ledger.counts();
  assert.deepEqual({ CLAIMED, PENDING, SENT }, { CLAIMED: 3, PENDING: 1, SENT: 0 });
  assert.deepEqual(await ledger.settle(outcomes), ['settled', 'settled', 'settled']);
  assert.deepEqual(await ledger.settle(outcomes), ['stale', 'stale', 'stale']);
  assert.equal((await ledger.claimDueBatch('w', 10)).length, 1);
});

test('purged messages leave room for new ones: the tables do not grow', async () => {
  // A separate server: index pages are reused only when no transaction of any database is older.
  await using server = await startPostgres();
  const own = new pg.Pool({ connectionString: server.url });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => own.end());
  const schema = 'work_purge';
  await using ledger = await open(schema, own);
  const sizes: number[] = [];
  for (let round = 0; round < 6; round += 1) {
    await enqueue(ledger, 2_000);
    await drain(ledger, 20);
    let purged = 0;
    for (let count = 1; count > 0; purged += count) count = await ledger.purge(future, 500);
    assert.equal(purged, 2_000);
    // Vacuum like autovacuum, but at a known time.
    for (const table of ['messages', 'ready', 'sent']) await own.query(`vacuum ${schema}.${table}`);
    const { rows } = await own.query<{ bytes: string }>(
      `select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and c.relname in ('messages', 'ready', 'sent')`,
      [schema],
    );
    sizes.push(Number(rows[0]?.bytes));
  }
  const [, second = 0] = sizes;
  assert.ok(Math.max(...sizes.slice(2)) <= 1.3 * second, `${sizes.join(', ')} bytes`);
});

test('a purge finds the oldest messages by their index', async () => {
  const schema = 'work_plan';
  await using ledger = await open(schema);
  await pool.query(`with added as (
      insert into ${schema}.messages (source_stream_id, source_event_id, integration_type, event_type,
        payload, lane)
      select 's', i::text, 'webhook:x', 'e', '{}', i % 64 from generate_series(1, 20000) i returning seq)
    insert into ${schema}.sent (seq, attempts, sent_at) select seq, 0, now() from added`);
  await pool.query(`analyze ${schema}.messages`);
  await pool.query(`analyze ${schema}.sent`);
  const text = purgeSql.replaceAll('{schema}', schema);
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
    `explain ${text.replace('$1', `${future.getTime()}`).replace('$2', '500')}`,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  assert.doesNotMatch(plan, /Seq Scan/);
  assert.match(plan, /sent_by_time/);
  assert.match(plan, /messages_pkey/);
  assert.equal(await ledger.purge(future, 500), 500);
});

test('large numbers of sent messages are estimated, other statuses are counted', async () => {
  await using ledger = await open('work_counts');
  const many = 120_000;
  await pool.query(
    `with m as (
       insert into work_counts.messages
         (source_stream_id, source_event_id, integration_type, event_type, payload, lane)
       select 's', n, 'kafka:a', 'a.b.v1', '{}', 0 from generate_series(1, $1::integer) n returning seq)
     insert into work_counts.sent (seq, attempts, sent_at) select seq, 0, now() from m`,
    [many],
  );
  await pool.query('analyze work_counts.messages');
  await enqueue(ledger, 3);
  const { SENT, ...others } = await ledger.counts();
  assert.deepEqual(others, { PENDING: 3, CLAIMED: 0, FAILED: 0, DEAD: 0, DISCARDED: 0 });
  assert.ok(Math.abs(SENT - many) < many / 5, `${SENT} of ${many}`);
});
