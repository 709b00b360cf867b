import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { SqlExpectationFailed } from '../../../store/sql-database.ts';
import { startSqliteWriter } from '../thread/writer.ts';

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
