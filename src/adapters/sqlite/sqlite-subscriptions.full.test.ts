import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { newEvent } from '../../store/store-fixture.conformance.ts';
import { startSubscription } from '../../subscriptions/start-subscription.ts';
import { subscription } from '../../subscriptions/subscription.ts';
import { subscriptionStorageConformance } from '../../subscriptions/subscription-storage.conformance.ts';
import { sqliteEventStore } from './sqlite-event-store.ts';
import type { SqliteTransaction } from './sqlite-subscriptions.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));
const path = join(folder, 'events.db');
const [store, second] = [await sqliteEventStore(path), await sqliteEventStore(path)];
const database = new DatabaseSync(path);
database.exec('create table effects (key text not null)');
after(async () => {
  database.close();
  await store[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test('statements that SQLite refuses are a failed attempt, and end as a dead letter', async () => {
  const stream = 'banking.account.v1-core-refused';
  await store.append(stream, [newEvent()]);
  const name = 'sub:banking:refused:v1';
  const each = subscription<SqliteTransaction>({
    name,
    filter: { streamPrefixes: [stream] },
    retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 3 },
    async handler(_event, context) {
      (await context.transaction()).run('insert into effects (key) values (null)');
    },
  });
  await using runner = await startSubscription(store, each);
  await runner.whenCaughtUp();
  const [letter] = await store.subscriptions.deadLetters.list({ handler: name });
  assert.equal(letter?.attempts, 3);
  assert.match(letter.error, /NOT NULL constraint failed/);
});

for (const { name, skip, run } of subscriptionStorageConformance<SqliteTransaction>({
  capabilities: store.subscriptions.capabilities,
  open: async () => store.subscriptions,
  second: async () => second.subscriptions,
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
