import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { newMessage } from '../../outbox/ledger-fixture.conformance.ts';
import { outboxLedgerConformance } from '../../outbox/outbox-ledger.conformance.ts';
import { sqliteOutboxTotals } from './sqlite-outbox-tables.ts';
import { sqliteMigrations } from './sqlite-schema.ts';
import { sqliteOutboxLedger, type SqliteOutboxTransaction } from './sqlite-outbox-ledger.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-outbox-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('a connection without an open transaction enqueues nothing', async () => {
  const path = join(folder, 'no-transaction.db');
  await using ledger = await sqliteOutboxLedger(path);
  const database = new DatabaseSync(path);
  try {
    const enqueue = (): Promise<unknown> => ledger.enqueueIn(database, [newMessage()]);
    await assert.rejects(enqueue, { code: 'TRANSACTION_INVALID' });
    database.exec('begin');
    await enqueue();
    database.exec('rollback');
    await assert.rejects(enqueue, { code: 'TRANSACTION_INVALID' });
    assert.deepEqual(await ledger.list({}), []);
  } finally {
    database.close();
  }
});

test('what a file had sent before its messages were counted is counted', async () => {
  const path = join(folder, 'older.db');
  const database = new DatabaseSync(path);
  const older = sqliteMigrations.indexOf(sqliteOutboxTotals);
  for (const step of sqliteMigrations.slice(0, older)) database.exec(step);
  database.exec(`pragma user_version = ${older}`);
  database.exec('insert into outbox_sent (seq, attempts, sent_at_ms) values (1, 0, 0), (2, 0, 0)');
  database.close();
  await using ledger = await sqliteOutboxLedger(path);
  assert.equal((await ledger.counts()).SENT, 2);
});

for (const { name, skip, run } of outboxLedgerConformance<SqliteOutboxTransaction>({
  capabilities: { durable: true, crossProcess: true, callerTransaction: true, streamMode: false },
  async open() {
    const path = join(folder, `${randomUUID()}.db`);
    const ledger = await sqliteOutboxLedger(path);
    return {
      ledger,
      second: () => sqliteOutboxLedger(path),
      async inTransaction(work) {
        const database = new DatabaseSync(path);
        try {
          // Takes the write lock with its first write, as a program's own transaction does.
          database.exec('begin');
          await work(database);
          database.exec('commit');
        } finally {
          database.close();
        }
      },
      async outage() {
        const database = new DatabaseSync(path);
        database.exec('drop table outbox_messages');
        database.close();
      },
      async readRelation() {
        const database = new DatabaseSync(path, { readOnly: true });
        try {
          return database.prepare('select * from integration_outbox').all();
        } finally {
          database.close();
        }
      },
    };
  },
})) {
  test(`outbox in SQLite: ${name}`, { skip: skip ?? false }, run);
}
