// An update of Millrace on a database with rows: each test puts the schema back to the level before a migration, with the
// tables and functions of that level, and opens it again.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { newMessage } from '../../testing/conformance/outbox/fixture.ts';
import {
  conflict,
  idsOf,
  newEvent,
  newEvents,
  newStream,
} from '../../testing/conformance/store/fixture.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { openPostgres } from './open-postgres.ts';
import { postgresOutboxMigrations } from './outbox/schema.ts';
import { postgresMigrations } from './store/schema.ts';

const { url } = await sharedPostgres();
const admin = new pg.Pool({ connectionString: url, max: 1 });
after(() => admin.end());

async function levelOf(schema: string): Promise<number> {
  const { rows } = await admin.query<{ level: number }>(
    `select max(number) as level from ${schema}.migrations`,
  );
  return rows[0]?.level ?? 0;
}

test('a store of the level before "repeats of ids" keeps its events', async () => {
  const schema = 'earlier_store';
  const migrations = postgresMigrations(schema);
  const fixing = migrations.find(({ title }) => title === 'repeats of ids');
  assert.ok(fixing !== undefined);
  const stream = newStream();
  const [twice, ...others] = newEvents(5);
  assert.ok(twice !== undefined);
  {
    await using db = await openPostgres(url, { schema, connectionsMax: 3 });
    await db.store.append(stream, [twice], { expected: 'none' });
    await db.store.append(stream, [twice], { expected: 0 });
    await db.store.append(stream, others);
    await admin.query(`drop function ${schema}.append_events`);
    const old = fixing.sql
      .replace('create or replace function', 'create function')
      .replace('count(distinct e.event_id)', 'count(*)');
    assert.notEqual(old, fixing.sql);
    await admin.query(old);
    await admin.query(`alter table ${schema}.dead_letters drop column cause`);
    await admin.query(`delete from ${schema}.migrations where number >= $1`, [fixing.number]);
    // The fault that the migration fixes.
    await conflict(() => db.store.append(stream, [twice]), { expected: 'any', actual: 5 });
  }
  await using db = await openPostgres(url, { schema, connectionsMax: 3 });
  const { store } = db;
  const stored = [twice, twice, ...others];
  assert.deepEqual(idsOf(await store.readStream(stream).toArray()), idsOf(stored));
  assert.deepEqual(idsOf(await store.readAll().toArray()), idsOf(stored));
  const again = await store.append(stream, [twice]);
  assert.deepEqual([again.isDuplicate, again.revision], [true, 1]);
  assert.equal((await store.append(stream, [newEvent()], { expected: 5 })).revision, 6);
  assert.equal(await levelOf(schema), migrations.at(-1)?.number);
});

test('an outbox of the level before "claims without outcomes" keeps its messages and claims', async () => {
  const outboxSchema = 'earlier_outbox';
  const migrations = postgresOutboxMigrations(outboxSchema);
  const fixing = migrations.find(({ title }) => title === 'claims without outcomes');
  assert.ok(fixing !== undefined);
  const options = { outboxSchema, roles: ['outbox'], connectionsMax: 3 } as const;
  const leaseMs = 60_000;
  await using before = await openPostgres(url, options);
  const items = Array.from({ length: 6 }, () => newMessage());
  const enqueued = await before.outbox.enqueueMany(items);
  const [sent, failed, dead, expired, valid] = await before.outbox.claimDueBatch('old', 5, {
    leaseMs,
  });
  assert.ok(sent && failed && dead && expired && valid);
  await before.outbox.markSent(sent);
  await before.outbox.markFailed(failed, 'later', new Date(Date.now() + leaseMs));
  await before.outbox.deadLetter(dead, 'never');
  await admin.query(
    `update ${outboxSchema}.ready set lease_until = now() - interval '1 second'
     where seq = (select seq from ${outboxSchema}.messages where id = $1)`,
    [expired.id],
  );
  await admin.query(`
    drop function ${outboxSchema}.claim_due;
    drop function ${outboxSchema}.renew_claims;
    create function ${outboxSchema}.exchange_claims(bigint[], bigint[], text[], text[], float8[], smallint[],
      bigint[], integer, integer, text, integer) returns void language sql as 'select';
    create function ${outboxSchema}.renew_claims(bigint[], bigint[], boolean[], text, integer, boolean)
      returns void language sql as 'select';
    drop table ${outboxSchema}.attempts;
    drop view ${outboxSchema}.integration_outbox;
    alter table ${outboxSchema}.dead drop column discarded;
    delete from ${outboxSchema}.migrations where number >= ${fixing.number};`);

  await using db = await openPostgres(url, options);
  const { outbox } = db;
  assert.deepEqual(await outbox.counts(), await before.outbox.counts());
  // The process of the earlier version still has a claim.
  assert.equal(await before.outbox.markSent(valid), 'settled');
  const claimed = await outbox.claimDueBatch('new', 10, { leaseMs });
  const rest = [expired.id, enqueued[5]?.id ?? ''];
  assert.deepEqual(claimed.map(({ id }) => id).toSorted(), rest.toSorted());
  const renewed = await outbox.renew(claimed, { workerId: 'new', leaseMs });
  assert.deepEqual(
    renewed.map((each) => (typeof each === 'string' ? each : each.id)).toSorted(),
    rest.toSorted(),
  );
  assert.equal((await outbox.find(failed.id))?.status, 'FAILED');
  assert.equal(await outbox.replay({}), 1);
  assert.equal(await levelOf(outboxSchema), migrations.at(-1)?.number);
});
