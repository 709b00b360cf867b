import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { newEvent } from '../../../testing/conformance/store/fixture.ts';
import { startSubscription } from '../../../subscriptions/subscription-runner.ts';
import { subscription } from '../../../subscriptions/subscription.ts';
import { sweepSql } from '../../../subscriptions/sql/storage.ts';
import { newLetter, acquireShard } from '../../../testing/conformance/subscriptions/fixture.ts';
import { subscriptionStorageConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { openSqlite } from '../open-sqlite.ts';
import { dialect } from '../connection/database.ts';
import type { SqliteTransaction } from './subscriptions.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));
const path = join(folder, 'events.db');
const [db, second] = [await openSqlite(path), await openSqlite(path)];
const database = new DatabaseSync(path);
database.exec('create table effects (key text not null)');
after(async () => {
  database.close();
  await db[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test('statements that SQLite rejects fail the attempt, and the event is dead-lettered', async () => {
  const stream = 'banking.account.v1-core-rejected';
  await db.store.append(stream, [newEvent()]);
  const name = 'sub:banking:rejected:v1';
  const each = subscription<SqliteTransaction>({
    name,
    filter: { streamPrefixes: [stream] },
    retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 3 },
    async handler(_event, context) {
      (await context.transaction()).run('insert into effects (key) values (null)');
    },
  });
  await using runner = await startSubscription(db, each);
  await runner.whenCaughtUp();
  const [letter] = await db.subscriptions.deadLetters.list({ handler: name });
  assert.equal(letter?.attempts, 3);
  assert.match(letter.error, /NOT NULL constraint failed/);
});

test('the SQL view of dead letters has the column names of the event flow document', async () => {
  const fence = await acquireShard(db.subscriptions);
  const added = newLetter(fence, { attempts: 6, createdAt: '2025-09-30T10:00:00.129Z' });
  await db.subscriptions.deadLetters.add(fence, added);
  const row = database.prepare('select * from dead_letter_queue where _id = ?').get(added.id);
  assert.deepEqual(
    { ...row, payload: JSON.parse(String(row?.['payload'])) as unknown },
    {
      _id: added.id,
      eventId: added.eventId,
      eventType: added.eventType,
      aggregateId: added.aggregateId,
      payload: added.payload,
      error: added.error,
      attempts: 6,
      createdAt: '2025-09-30T10:00:00.129Z',
      status: 'pending',
      replayedAt: null,
      replayedBy: null,
      notes: '',
      handler: added.handler,
      history: JSON.stringify(added.history),
    },
  );
});

test('finds expired claims by their index', () => {
  const plan = database
    .prepare(`explain query plan ${sweepSql(dialect)}`)
    .all(1_000)
    .map(({ detail }) => String(detail))
    .join('\n');
  assert.match(plan, /SEARCH processed_events USING (COVERING )?INDEX processed_events_by_expiry/);
  assert.match(plan, /SEARCH processed_events USING PRIMARY KEY/);
  assert.doesNotMatch(plan, /SCAN processed_events/);
});

for (const { name, skip, run } of subscriptionStorageConformance<SqliteTransaction>({
  capabilities: db.subscriptions.capabilities,
  open: async () => db.subscriptions,
  second: async () => second.subscriptions,
  async damage(handler, json) {
    const change = (sql: string) => database.prepare(sql).run(json, handler);
    change('update dead_letters set payload = ?1, history = ?1, cause = ?1 where handler = ?2');
    change('update subscription_waiting set history = ?1 where subscription = ?2');
    change('update subscriptions set filter = ?1 where name = ?2');
  },
  effects: {
    async write(transaction, key) {
      transaction.run('insert into effects (key) values (?)', key);
    },
    count: async (key) =>
      Number(database.prepare('select count(*) as n from effects where key = ?').get(key)?.['n']),
  },
})) {
  test(`subscriptions in SQLite: ${name}`, { skip: skip ?? false }, run);
}
