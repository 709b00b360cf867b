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

test('a message has its effect once, however often it comes', () => {
  const { database, inbox, effect, effects } = open();
  assert.deepEqual(inbox.once(database, 'm', effect('m')), { kind: 'handled', result: 1 });
  assert.deepEqual(inbox.once(database, 'm', effect('m')), { kind: 'duplicate' });
  assert.equal(effects(), 1);
});

test('an effect that fails leaves no trace, and the message can come again', () => {
  const { database, inbox, effect, effects } = open();
  const failing = (): never => {
    effect('m')();
    throw new Error('broken');
  };
  assert.throws(() => inbox.once(database, 'm', failing), /broken/);
  assert.equal(effects(), 0);
  assert.equal(inbox.once(database, 'm', effect('m')).kind, 'handled');
});

test('an effect that waits is refused and undone', () => {
  const { database, inbox, effect, effects } = open();
  const waiting = async (): Promise<void> => void effect('m')();
  assert.throws(() => inbox.once(database, 'm', waiting), { code: 'NOT_SUPPORTED' });
  assert.equal(effects(), 0);
  assert.equal(inbox.once(database, 'm', effect('m')).kind, 'handled');
});

test('it takes part in a transaction of yours', () => {
  const { database, inbox } = open();
  database.exec('begin immediate');
  assert.equal(inbox.isNew(database, 'm'), true);
  assert.equal(inbox.isNew(database, 'm'), false);
  database.exec('rollback');
  assert.equal(inbox.isNew(database, 'm'), true);
});

test('consumers do not take messages from each other', () => {
  const { database, inbox } = open();
  assert.equal(inbox.isNew(database, 'm'), true);
  assert.equal(sqliteInbox({ consumer: 'other' }).isNew(database, 'm'), true);
});

test('what is older than its time is forgotten, in batches, by the index, and nothing else', async () => {
  const { database, inbox, clock } = open();
  for (let index = 0; index < 2_500; index += 1) inbox.isNew(database, `old-${index}`);
  await clock.advance(1_001);
  inbox.isNew(database, 'young');
  const plan = database
    .prepare(
      `explain query plan select message_id from millrace_inbox
       where consumer = 'default' and received_at_ms < 5 order by received_at_ms limit 10`,
    )
    .all();
  assert.match(JSON.stringify(plan), /millrace_inbox_received_at/);
  assert.equal(inbox.clean(database), 2_500);
  assert.equal(inbox.isNew(database, 'young'), false);
  assert.equal(inbox.isNew(database, 'old-1'), true);
});

test('a message without an id is refused before anything is begun', () => {
  const { database, inbox, effect } = open();
  assert.throws(() => inbox.once(database, '', effect('m')), { code: 'PAYLOAD_INVALID' });
  assert.equal(database.isTransaction, false);
});
