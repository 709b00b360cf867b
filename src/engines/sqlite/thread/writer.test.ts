import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { StreamWrite } from '../../../store/store-engine.ts';
import type { SqlStatement } from './protocol.ts';
import { startSqliteWriter, type SqliteWriter } from './writer.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-writer-'));
after(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
function newPath(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

const openWriter = (path: string): Promise<SqliteWriter> =>
  startSqliteWriter({ path, busyTimeoutMs: 60_000 });

let events = 0;
function append(writer: SqliteWriter, stream = 's'): Promise<unknown> {
  events += 1;
  const row = { eventId: `e-${events}`, type: 't', tenant: '', payload: '{}', meta: '{}' };
  const write: StreamWrite = { stream, expected: 'any', rows: [row] };
  return writer.append([write], 0);
}

/** Counts the events at the moment of its commit. */
const countEvents: SqlStatement = {
  sql: 'select count(*) as events from events',
  values: [],
  isHousekeeping: true,
};

/** Keeps the writer thread from committing during the work, as another process would. */
async function whileLocked(path: string, work: () => Promise<void>): Promise<void> {
  using other = new DatabaseSync(path, { timeout: 30_000 });
  other.exec('begin immediate');
  await work();
  other.exec('rollback');
}

test('an append is committed before the housekeeping that was sent earlier', async () => {
  const path = newPath();
  await using writer = await openWriter(path);
  const order: string[] = [];
  const note = (what: string) => () => void order.push(what);
  const all: Promise<void>[] = [];
  await whileLocked(path, async () => {
    for (let piece = 0; piece < 100; piece += 1) {
      all.push(writer.run([countEvents]).then(note('housekeeping')));
    }
    // Each part of the backlog is in a separate message by now.
    await new Promise(setImmediate);
    all.push(append(writer).then(note('append')));
    await new Promise(setImmediate);
  });
  await Promise.all(all);
  assert.equal(order.length, 101);
  // The thread may have taken the first piece before the append arrived.
  assert.ok(order.indexOf('append') <= 1, `${order.indexOf('append')} pieces were committed first`);
});

test('housekeeping completes while appends never stop', async () => {
  await using writer = await openWriter(newPath());
  let isDone = false;
  const appending = Array.from({ length: 4 }, async (_, at) => {
    while (!isDone) await append(writer, `s-${at}`);
  });
  await append(writer);
  const pieces = await Promise.all(Array.from({ length: 10 }, () => writer.run([countEvents])));
  isDone = true;
  await Promise.all(appending);
  const counts = pieces.map(([rows]) => Number(rows?.[0]?.['events']));
  assert.equal(counts.length, 10);
  assert.ok(counts.every((count) => count > 0));
});

test('requests of one class are committed in the order of the calls', async () => {
  const path = newPath();
  await using writer = await openWriter(path);
  const revisions: Promise<unknown>[] = [];
  const housekeeping: number[] = [];
  const pieces: Promise<unknown>[] = [];
  await whileLocked(path, async () => {
    for (let at = 0; at < 100; at += 1) {
      revisions.push(append(writer, 'ordered'));
      pieces.push(writer.run([countEvents]).then(() => housekeeping.push(at)));
    }
    await new Promise(setImmediate);
  });
  const outcomes = (await Promise.all(revisions)) as readonly { readonly revision: number }[][];
  await Promise.all(pieces);
  const expected = Array.from({ length: 100 }, (_, at) => at);
  assert.deepEqual(
    outcomes.map(([outcome]) => outcome?.revision),
    expected,
  );
  assert.deepEqual(housekeeping, expected);
});

test('closing the writer commits the waiting housekeeping first', async () => {
  const path = newPath();
  const writer = await openWriter(path);
  const mark = 'insert into names (name) values (?) returning id';
  const pieces = Array.from({ length: 50 }, (_, at) =>
    writer.run([{ sql: mark, values: [`piece-${at}`], isHousekeeping: true }]),
  );
  const appended = append(writer);
  await writer[Symbol.asyncDispose]();
  await Promise.all([...pieces, appended]);
  using database = new DatabaseSync(path);
  const sql = `select count(*) as stored from names where name like 'piece-%'`;
  assert.equal(database.prepare(sql).get()?.['stored'], 50);
});

test('files that are opened one after the other keep their own events', async () => {
  const paths = [newPath(), newPath(), newPath()];
  for (const [at, path] of paths.entries()) {
    await using writer = await openWriter(path);
    for (let count = 0; count <= at; count += 1) await append(writer);
  }
  const counts = paths.map((path) => {
    using database = new DatabaseSync(path);
    return database.prepare('select count(*) as events from events').get()?.['events'];
  });
  assert.deepEqual(counts, [1, 2, 3]);
});

test('a request after the close is rejected without the thread, which may have the next file', async () => {
  const writer = await openWriter(newPath());
  const order: string[] = [];
  const appended = append(writer).then(() => order.push('appended'));
  const closed = writer[Symbol.asyncDispose]();
  await assert.rejects(append(writer), { code: 'STORE_CLOSED' });
  order.push('rejected');
  await Promise.all([appended, closed, writer[Symbol.asyncDispose]()]);
  assert.deepEqual(order, ['rejected', 'appended']);
});

test('a file that cannot be opened does not affect the next one', async () => {
  await (await openWriter(newPath()))[Symbol.asyncDispose]();
  const path = newPath();
  writeFileSync(path, 'not a database, but long enough to be read as one'.repeat(100));
  await assert.rejects(openWriter(path), { code: 'STORE_UNAVAILABLE' });
  await using writer = await openWriter(newPath());
  await append(writer);
});
