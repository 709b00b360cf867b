import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { newMessage } from '../../../testing/conformance/outbox/fixture.ts';
import { outboxLedgerConformance } from '../../../testing/conformance/outbox/outbox-ledger.ts';
import { sqliteOutboxTotals } from './tables.ts';
import { sqliteMigrations } from '../connection/schema.ts';
import {
  openSharedSqliteFile,
  type SharedSqliteFile,
} from '../../../testing/conformance/engines/sqlite-shared-file.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openSqlite } from '../open-sqlite.ts';
import { sqliteOutboxLedger, type SqliteOutboxTransaction } from './ledger.ts';
import { bySourceSql, listSql } from './sql.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-outbox-'));
const closing = new AsyncDisposableStack();
closing.defer(() => rmSync(folder, { recursive: true, force: true }));
after(() => closing.disposeAsync());

test('rejects an enqueue on a connection without an open transaction', async () => {
  const path = join(folder, 'no-transaction.db');
  await using db = await openSqlite(path);
  const database = new DatabaseSync(path);
  try {
    const enqueue = (): Promise<unknown> => db.outbox.enqueueIn(database, [newMessage()]);
    await assert.rejects(enqueue, { code: 'TRANSACTION_INVALID' });
    database.exec('begin');
    await enqueue();
    database.exec('rollback');
    await assert.rejects(enqueue, { code: 'TRANSACTION_INVALID' });
    assert.deepEqual(await db.outbox.list({}), []);
  } finally {
    database.close();
  }
});

test('the migration counts the messages that were sent before it', async () => {
  const path = join(folder, 'older.db');
  const database = new DatabaseSync(path);
  const older = sqliteMigrations.indexOf(sqliteOutboxTotals);
  for (const step of sqliteMigrations.slice(0, older)) database.exec(step);
  database.exec(`pragma user_version = ${older}`);
  database.exec('insert into outbox_sent (seq, attempts, sent_at_ms) values (1, 0, 0), (2, 0, 0)');
  database.close();
  await using db = await openSqlite(path);
  assert.equal((await db.outbox.counts()).SENT, 2);
});

test('a damaged record of jobs does not stop the renewal and the outcomes of other messages', async () => {
  const path = join(folder, 'damaged-jobs.db');
  await using db = await openSqlite(path);
  await db.outbox.enqueueMany([newMessage(), newMessage(), newMessage()]);
  const claimed = await db.outbox.claimDueBatch('dispatcher', 9);
  const database = new DatabaseSync(path);
  database.exec(`update outbox_ready set jobs = '[[1' where seq = 1`);
  const renewed = await db.outbox.renew(claimed, { workerId: 'worker' });
  database.exec(`update outbox_ready set jobs = '[[1' where seq = 2`);
  database.close();
  const outcomes = renewed.flatMap((claim) =>
    typeof claim === 'string' ? [] : [{ kind: 'sent', claim } as const],
  );
  assert.deepEqual(await db.outbox.settle(outcomes), ['settled', 'settled', 'settled']);
  const listed = await db.outbox.list({ status: 'SENT' });
  assert.deepEqual(
    listed.map(({ jobs }) => jobs?.length),
    [1, undefined, 1],
  );
});

test('a page of the list, and a message by its id, are read by keys, whatever the number of messages', async () => {
  const path = join(folder, 'pages.db');
  await using db = await openSqlite(path);
  assert.deepEqual(await db.outbox.list({}), []);
  using database = new DatabaseSync(path);
  for (const oldestFirst of [false, true]) {
    for (const byIds of [false, true]) {
      const rows = database.prepare(`explain query plan ${listSql(oldestFirst, byIds)}`).all();
      const plan = rows.map(({ detail }) => detail).join('\n');
      const range = `rowid${oldestFirst ? '>' : '<'}`;
      const key = byIds
        ? `SEARCH m USING INDEX .* \\(id=\\? AND ${range}`
        : `PRIMARY KEY \\(${range}`;
      assert.match(plan, new RegExp(key), plan);
      assert.doesNotMatch(plan, /SCAN m/, plan);
    }
  }
});

test('the messages of events are found without their payloads', async () => {
  const path = join(folder, 'heads.db');
  await using db = await openSqlite(path);
  const message = newMessage();
  const { id } = await db.outbox.enqueue(message);
  const [found] = await db.outbox.bySource([message]);
  const { payload: _payload, headers: _headers, ...head } = (await db.outbox.find(id)) ?? {};
  assert.deepEqual(found, head);
  using database = new DatabaseSync(path);
  const read = database.prepare(bySourceSql).columns();
  assert.ok(read.length > 20);
  assert.deepEqual(
    read.filter(({ column }) => column === 'payload' || column === 'headers'),
    [],
  );
});

let shared: SharedSqliteFile | undefined;

for (const { name, skip, run } of outboxLedgerConformance<SqliteOutboxTransaction>({
  capabilities: { durable: true, crossProcess: true, callerTransaction: true },
  async open() {
    shared ??= closing.use(await openSharedSqliteFile(folder, 10_000));
    shared.reset();
    const { path } = shared.file;
    return {
      ledger: sqliteOutboxLedger(shared.file),
      second: async () => ownedRole(await openSqlite(path), 'outbox'),
      async inTransaction(work) {
        const database = new DatabaseSync(path);
        try {
          // Takes the write lock with its first write, as an application's transaction does.
          database.exec('begin');
          await work(database);
          database.exec('commit');
        } finally {
          database.close();
        }
      },
      async outage() {
        // Do not reuse the file: the next case gets another one.
        shared = undefined;
        const database = new DatabaseSync(path);
        database.exec('drop table outbox_messages');
        database.close();
      },
      async damage(id, column, text) {
        const database = new DatabaseSync(path);
        database.prepare(`update outbox_messages set ${column} = ? where id = ?`).run(text, id);
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
