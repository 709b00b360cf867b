// The loop of the outbox document with direct delivery: a claim locks a batch and updates its rows one by
// one, and each sent row is updated in a separate commit. The queue uses plain SQL instead of the document's ORM,
// which makes it faster.

import pg from 'pg';
import { setTimeout } from 'node:timers/promises';
import { openTransaction } from './open-transaction.ts';
import type { QueueSubject } from './queue-subject.ts';
import { inBatches, type SampleMessage } from './sample-messages.ts';

const table = `
create table integration_outbox (
  id uuid primary key default gen_random_uuid(),
  source_stream_id varchar(200) not null,
  source_event_id varchar(100) not null,
  integration_type varchar(120) not null,
  event_type varchar(120) not null,
  payload jsonb not null,
  headers jsonb,
  tenant_id varchar(60),
  user_id varchar(60),
  correlation_id varchar(120),
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  max_attempts integer not null default 10,
  status varchar(20) not null default 'PENDING',
  locked_at timestamptz,
  locked_by varchar(120),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  sent_at timestamptz,
  last_error text
);
create index on integration_outbox (due_at, status);
create index on integration_outbox (status);
create unique index on integration_outbox (source_stream_id, source_event_id)`;

const insertSql = `
insert into integration_outbox (source_stream_id, source_event_id, integration_type, event_type, payload,
  tenant_id, correlation_id)
select r."sourceStreamId", r."sourceEventId", r."integrationType", r."eventType", r.payload,
  r."tenantId", r."correlationId"
from json_to_recordset($1::json) as r("sourceStreamId" text, "sourceEventId" text,
  "integrationType" text, "eventType" text, payload jsonb, "tenantId" text, "correlationId" text)`;

const claimSql = {
  name: 'claim',
  text: `select * from integration_outbox where status = 'PENDING' and due_at <= now()
    order by due_at limit $1 for update skip locked`,
};
const claimRowSql = {
  name: 'claim-row',
  text: `update integration_outbox set status = 'CLAIMED', locked_by = $2, locked_at = now(), updated_at = now()
    where id = $1 and status = 'PENDING'`,
};
const sentSql = {
  name: 'sent',
  text: `update integration_outbox set status = 'SENT', sent_at = now(), updated_at = now() where id = $1`,
};

const batchSize = 100;
const tickIntervalMs = 1_000;

interface Claimed {
  readonly id: string;
  readonly tenant_id: string;
}

export const naiveQueue: QueueSubject = {
  name: 'naive',
  async open(servers) {
    const pool = new pg.Pool({ connectionString: await servers.postgres(), max: 10 });
    await pool.query(table);
    const insert = (on: pg.Pool | pg.PoolClient, messages: readonly SampleMessage[]) =>
      on.query(insertSql, [JSON.stringify(messages)]);

    async function claim(): Promise<readonly Claimed[]> {
      const client = await pool.connect();
      try {
        await client.query('begin');
        const { rows } = await client.query<Claimed>({ ...claimSql, values: [batchSize] });
        for (const { id } of rows) await client.query({ ...claimRowSql, values: [id, 'worker'] });
        await client.query('commit');
        return rows;
      } finally {
        client.release();
      }
    }

    return {
      async enqueue(messages) {
        for (const batch of inBatches(messages)) await insert(pool, batch);
      },
      begin: (message) => openTransaction(pool, (client) => insert(client, [message])),
      async start({ concurrency, handle }) {
        const stopping = new AbortController();
        const { signal } = stopping;
        const done = run();
        return {
          async stop() {
            stopping.abort();
            await done;
          },
        };

        async function run(): Promise<void> {
          while (!signal.aborted) {
            const rows = [...(await claim())];
            const isEmpty = rows.length === 0;
            const send = async (): Promise<void> => {
              for (let row = rows.shift(); row !== undefined; row = rows.shift()) {
                handle({ tenantId: row.tenant_id });
                await pool.query({ ...sentSql, values: [row.id] });
              }
            };
            await Promise.all(Array.from({ length: concurrency }, send));
            // Rejects only when it is stopped, and then the loop ends.
            if (isEmpty) await setTimeout(tickIntervalMs, null, { signal }).catch(() => null);
          }
        }
      },
      async isSettled() {
        const { rows } = await pool.query<{ left: boolean }>(
          `select exists (select from integration_outbox where status = 'PENDING')
             or exists (select from integration_outbox where status = 'CLAIMED') as left`,
        );
        return rows[0]?.left === false;
      },
      empty: async () => void (await pool.query('truncate integration_outbox')),
      close: () => pool.end(),
    };
  },
};
