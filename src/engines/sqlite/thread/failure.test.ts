import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { SqlExpectationFailed } from '../../../store/sql-database.ts';
import { fromFailure, toFailure, type WriterFailure } from './failure.ts';
import { startSqliteWriter } from './writer.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-writer-failure-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** The error as it arrives on the calling thread, with its message replaced. */
function crossed(error: unknown): Error {
  const failure: WriterFailure = structuredClone(toFailure(error));
  const changed = 'message' in failure ? { ...failure, message: 'another message' } : failure;
  return fromFailure(changed, 'file.db');
}

function sqliteErrorOf(sql: string): unknown {
  using database = new DatabaseSync(':memory:');
  try {
    database.exec(sql);
  } catch (error) {
    return error;
  }
  return assert.fail('SQLite took the statement');
}

test('a MillraceError crosses with its code, retryable, details and message', () => {
  const options = { retryable: false, details: { field: 'x' } };
  const error = new MillraceError('STORE_UNAVAILABLE', 'the original message', options);
  const arrived = crossed(error);
  assert.ok(hasCode(arrived, 'STORE_UNAVAILABLE'));
  assert.equal(arrived.retryable, false);
  assert.deepEqual(arrived.details, { field: 'x' });
  assert.equal(fromFailure(toFailure(error), 'file.db').message, 'the original message');
});

test('an unmet expectation crosses as SqlExpectationFailed, whatever its message', () => {
  for (const what of ['fence', 'new'] as const) {
    const error = new SqlExpectationFailed(what);
    error.message = 'another message';
    const arrived = crossed(error);
    assert.ok(arrived instanceof SqlExpectationFailed);
    assert.equal(arrived.what, what);
  }
});

test('damaged stored data is not an outage that a retry ends', () => {
  const errors = [
    new SyntaxError('Unexpected end of JSON input'),
    sqliteErrorOf(`select json_extract('{"a', '$.a')`),
  ];
  for (const error of errors) {
    const arrived = fromFailure(structuredClone(toFailure(error)), 'file.db');
    assert.ok(hasCode(arrived, 'STORE_CORRUPT'), String(arrived));
    assert.equal(arrived.retryable, false);
  }
});

test("an error of SQLite crosses with SQLite's code", () => {
  const arrived = crossed(
    sqliteErrorOf('create table t (a unique); insert into t values (1), (1)'),
  );
  assert.ok(hasCode(arrived, 'STORE_UNAVAILABLE'));
  assert.equal(arrived.details['sqliteCode'], 19);
  const corrupt = fromFailure({ kind: 'sqlite', sqliteCode: 11, message: 'any' }, 'file.db');
  assert.ok(hasCode(corrupt, 'STORE_CORRUPT'));
});

test('an unexpected error crosses with its stack', () => {
  const error = new TypeError('x is not a function');
  const arrived = crossed(error);
  assert.ok(hasCode(arrived, 'STORE_UNAVAILABLE'));
  assert.ok(arrived.cause instanceof Error);
  assert.equal(arrived.cause.stack, error.stack);
});

test('the writer thread reports an unmet expectation, an error of SQLite and an unexpected error by kind', async () => {
  await using writer = await startSqliteWriter({
    path: join(folder, 'kinds.db'),
    busyTimeoutMs: 10_000,
  });
  const expect = { what: 'fence', rows: 2 } as const;
  await assert.rejects(
    writer.run([{ sql: 'select 1', values: [], expect }]),
    (error) => error instanceof SqlExpectationFailed && error.what === 'fence',
  );
  await assert.rejects(
    writer.run([{ sql: 'select * from no_such_table', values: [] }]),
    (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.details['sqliteCode'] === 1,
  );
  await assert.rejects(
    // @ts-expect-error a value that SQLite cannot bind
    writer.run([{ sql: 'select ?, ?', values: [1, {}] }]),
    (error) =>
      hasCode(error, 'STORE_UNAVAILABLE') &&
      error.details['sqliteCode'] === undefined &&
      error.cause instanceof Error &&
      /writer-main/.test(String(error.cause.stack)),
  );
});

test('rejects a file of a newer version with CONFIG_INVALID, not as an outage', async () => {
  const path = join(folder, 'newer.db');
  const database = new DatabaseSync(path);
  database.exec('pragma user_version = 999');
  database.close();
  await assert.rejects(
    startSqliteWriter({ path, busyTimeoutMs: 10_000 }),
    (error) => hasCode(error, 'CONFIG_INVALID') && error.details['version'] === 999,
  );
});
