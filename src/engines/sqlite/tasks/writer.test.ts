import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { SqlExpectationFailed } from '../../../store/sql-database.ts';
import { startSqliteWriter } from '../thread/writer.ts';
import { tidyStepMax } from './writer.ts';

test('the group of a type exists after its first claim, even if the shared commit was rolled back', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-task-writer-'));
  try {
    await using writer = await startSqliteWriter({
      path: join(folder, 'tasks.db'),
      busyTimeoutMs: 10_000,
    });
    const nowMs = Date.UTC(2025, 8, 30);
    const claim = { worker: 'w', aliveUntilMs: nowMs, limit: 1, rules: [], nowMs };
    const queue = { type: 'email', group: 'email-workers', subject: 'core.tasks.email.queue' };
    // The second request rolls back the commit that both share; then each request runs in a separate commit.
    const operation = 'tasks.changeAndClaim';
    const claimed = writer.call({ operation, changes: [], claim, queues: [queue], nowMs });
    const expect = { what: 'fence', rows: 2 } as const;
    await assert.rejects(
      writer.run([{ sql: 'select 1', values: [], expect }]),
      SqlExpectationFailed,
    );
    await claimed;
    const [groups] = await writer.run([{ sql: 'select name from bus_groups', values: [] }]);
    assert.deepEqual(
      groups?.map(({ name }) => name),
      ['email-workers'],
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('expired dedupe keys are deleted in short commits, and later keys stay', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-task-writer-'));
  try {
    const path = join(folder, 'tasks.db');
    await using writer = await startSqliteWriter({ path, busyTimeoutMs: 10_000 });
    const sql = `insert into task_dedupes (type, key, id, until_ms)
      select 'email', cast(value as text), 'id', value from json_each(?)`;
    const keys = Array.from({ length: 2 * tidyStepMax + 10 }, (_, at) => at + 1);
    await writer.run([{ sql, values: [JSON.stringify(keys)] }]);
    const nowMs = 2 * tidyStepMax + 5;
    const hasMore: boolean[] = [];
    do hasMore.push(await writer.call({ operation: 'tasks.tidy', nowMs }));
    while (hasMore.at(-1) === true);
    assert.deepEqual(hasMore, [true, true, false]);
    const [left] = await writer.run([{ sql: 'select key from task_dedupes', values: [] }]);
    assert.equal(left?.length, 5);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
