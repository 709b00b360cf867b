import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { sqliteInbox } from './inbox.ts';

function open() {
  const database = new DatabaseSync(':memory:');
  database.exec('create table effects (key text not null)');
  const clock = fakeClock();
  const inbox = sqliteInbox({ clock, ttlMs: 1_000 });
  inbox.migrate(database);
  inbox.migrate(database);
  const effect = (key: string) => () =>
    database.prepare('insert into effects (key) values (?)').run(key).changes;
  const effects = (): unknown => database.prepare('select count(*) as n from effects').get()?.['n'];
  return { database, clock, inbox, effect, effects };
}

test('runs the effect of a message once, however often it is received', () => {
  const { database, inbox, effect, effects } = open();
  assert.deepEqual(inbox.once(database, 'm', effect('m')), { kind: 'handled', result: 1 });
  assert.deepEqual(inbox.once(database, 'm', effect('m')), { kind: 'duplicate' });
  assert.equal(effects(), 1);
});

test('rolls back a failed effect, and handles the message when it is received again', () => {
  const { database, inbox, effect, effects } = open();
  const failing = (): never => {
    effect('m')();
    throw new Error('broken');
  };
  assert.throws(() => inbox.once(database, 'm', failing), /broken/);
  assert.equal(effects(), 0);
  assert.equal(inbox.once(database, 'm', effect('m')).kind, 'handled');
});

test('rejects and rolls back an asynchronous effect', () => {
  const { database, inbox, effect, effects } = open();
  const waiting = async (): Promise<void> => void effect('m')();
  assert.throws(() => inbox.once(database, 'm', waiting), { code: 'NOT_SUPPORTED' });
  assert.equal(effects(), 0);
  assert.equal(inbox.once(database, 'm', effect('m')).kind, 'handled');
});

test("joins the caller's transaction", () => {
  const { database, inbox } = open();
  database.exec('begin immediate');
  assert.equal(inbox.isDuplicate(database, 'm'), false);
  assert.equal(inbox.isDuplicate(database, 'm'), true);
  database.exec('rollback');
  assert.equal(inbox.isDuplicate(database, 'm'), false);
});

test('each consumer handles a message once', () => {
  const { database, inbox } = open();
  assert.equal(inbox.isDuplicate(database, 'm'), false);
  assert.equal(sqliteInbox({ consumer: 'other' }).isDuplicate(database, 'm'), false);
});

test('clean() deletes only expired ids, in batches, by the index', async () => {
  const { database, inbox, clock } = open();
  for (let index = 0; index < 2_500; index += 1) inbox.isDuplicate(database, `old-${index}`);
  await clock.advance(1_001);
  inbox.isDuplicate(database, 'young');
  const plan = database
    .prepare(
      `explain query plan select message_id from millrace_inbox
       where consumer = 'default' and received_at_ms < 5 order by received_at_ms limit 10`,
    )
    .all();
  assert.match(JSON.stringify(plan), /millrace_inbox_received_at/);
  assert.equal(inbox.clean(database), 2_500);
  assert.equal(inbox.isDuplicate(database, 'young'), true);
  assert.equal(inbox.isDuplicate(database, 'old-1'), false);
});

test('rejects a message without an id before a transaction begins', () => {
  const { database, inbox, effect } = open();
  assert.throws(() => inbox.once(database, '', effect('m')), { code: 'PAYLOAD_INVALID' });
  assert.equal(database.isTransaction, false);
});
