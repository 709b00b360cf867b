import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startSqliteWriter } from '../thread/writer.ts';

test('the group of a type exists after its first claim, also when the commit with it was rolled back', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-task-writer-'));
  try {
    await using writer = await startSqliteWriter({
      path: join(folder, 'tasks.db'),
      busyTimeoutMs: 10_000,
    });
    const nowMs = Date.UTC(2025, 8, 30);
    const claim = { worker: 'w', aliveUntilMs: nowMs, limit: 1, rules: [], nowMs };
    const queue = { type: 'email', group: 'email-workers', subject: 'core.tasks.email.queue' };
    // Both in one commit, which the second one rolls back; then each is carried out alone.
    const exchange = { op: 'exchange', changes: [], claim, queues: [queue], nowMs } as const;
    const claimed = writer.tasks(exchange);
    const expect = { what: 'two rows', rows: 2 };
    await assert.rejects(writer.run([{ sql: 'select 1', values: [], expect }]), /two rows/);
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
