// A database where the migration of the outbox document was run before: what the error says, and that its steps work.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import type { EnqueueOutboxProps } from '../../src/outbox/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { runMillrace } from '../cli-store-terminal.ts';

/** As the document has it. */
const documentSql = `
CREATE SCHEMA IF NOT EXISTS core_outbox;
CREATE TABLE IF NOT EXISTS core_outbox.integration_outbox (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  source_stream_id varchar(200) NOT NULL,
  source_event_id varchar(100) NOT NULL,
  integration_type varchar(120) NOT NULL,
  event_type varchar(120) NOT NULL,
  payload jsonb NOT NULL,
  headers jsonb,
  tenant_id varchar(60),
  user_id varchar(60),
  correlation_id varchar(120),
  due_at timestamptz NOT NULL DEFAULT now(),
  attempts int NOT NULL DEFAULT 0,
  max_attempts int NOT NULL DEFAULT 10,
  status varchar(20) NOT NULL DEFAULT 'PENDING',
  locked_at timestamptz,
  locked_by varchar(120),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  sent_at timestamptz,
  last_error text
);
CREATE UNIQUE INDEX IF NOT EXISTS ux_outbox_source ON core_outbox.integration_outbox (source_stream_id, source_event_id);
CREATE INDEX IF NOT EXISTS ix_outbox_status_due ON core_outbox.integration_outbox (status, due_at);
`;

interface Row extends Omit<EnqueueOutboxProps, 'correlationId' | 'tenantId' | 'userId'> {
  readonly id: string;
  readonly tenantId: string | null;
  readonly userId: string | null;
  readonly correlationId: string | null;
}

/** The loop of docs/outbox.md. */
async function enqueueUnsent(pool: pg.Pool): Promise<void> {
  await using db = await openPostgres(pool, { roles: ['outbox'] });
  for (let after = '00000000-0000-0000-0000-000000000000'; ;) {
    const { rows } = await pool.query<Row>(
      `select id, source_stream_id "sourceStreamId", source_event_id "sourceEventId",
         integration_type "integrationType", event_type "eventType", payload, coalesce(headers, '{}') headers,
         tenant_id "tenantId", user_id "userId", correlation_id "correlationId", due_at "dueAt", max_attempts "maxAttempts"
       from core_outbox_before.integration_outbox
       where status in ('PENDING', 'CLAIMED', 'FAILED') and id > $1 order by id limit 1000`,
      [after],
    );
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.id;
    await db.outbox.enqueueMany(
      rows.map(({ id: _id, ...row }) => ({
        ...row,
        tenantId: row.tenantId ?? undefined,
        userId: row.userId ?? undefined,
        correlationId: row.correlationId ?? undefined,
      })),
    );
  }
}

test('a database with the table of the outbox document is refused, and its unsent rows are sent after the steps of the error', async () => {
  const { url } = await sharedPostgres();
  await using stack = new AsyncDisposableStack();
  const pool = new pg.Pool({ connectionString: url });
  stack.defer(() => pool.end());
  await pool.query(documentSql);
  for (const [event, status] of [
    ['e-1', 'PENDING'],
    ['e-2', 'FAILED'],
    ['e-3', 'CLAIMED'],
    ['e-4', 'SENT'],
    ['e-5', 'DEAD'],
  ] as const) {
    await pool.query(
      `insert into core_outbox.integration_outbox (source_stream_id, source_event_id, integration_type, event_type, payload, headers, tenant_id, status)
       values ('paymenthub.payment.v1-core-p1', $1, 'kafka:payments', 'payment.completed.v1', '{"paymentId":"p1"}', $2, 'core', $3)`,
      [event, { idempotencyKey: event }, status],
    );
  }
  const migrate = () => runMillrace(['migrate', '--outbox'], { env: { MILLRACE_STORE: url } });
  const refused = await migrate();
  assert.equal(refused.code, 1);
  const [, step = ''] = /run "([^"]*"[^"]*"[^"]*"[^"]*")"/.exec(refused.stderr) ?? [];
  assert.equal(step, 'alter schema "core_outbox" rename to "core_outbox_before"');
  assert.match(refused.stderr, /CONFIG_INVALID/);
  // Nothing was changed.
  const before = await pool.query('select status from core_outbox.integration_outbox');
  assert.equal(before.rowCount, 5);

  await pool.query(step);
  assert.equal((await migrate()).code, 0);
  await enqueueUnsent(pool);
  await enqueueUnsent(pool);
  await using db = await openPostgres(url, { roles: ['outbox'] });
  const claimed = await db.outbox.claimDueBatch('w', 100);
  const found = claimed.map(({ sourceEventId, tenantId, payload, headers, maxAttempts }) =>
    JSON.stringify({ sourceEventId, tenantId, payload, headers, maxAttempts }),
  );
  assert.deepEqual(
    found.toSorted(),
    ['e-1', 'e-2', 'e-3'].map((sourceEventId) =>
      JSON.stringify({
        sourceEventId,
        tenantId: 'core',
        payload: { paymentId: 'p1' },
        headers: { idempotencyKey: sourceEventId },
        maxAttempts: 10,
      }),
    ),
  );
});
