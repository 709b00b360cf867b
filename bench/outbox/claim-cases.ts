// The duration of a claim, including settling the previous batch, on a ledger in some state compared with a
// new ledger: a hundred claims of each in turn, one uncounted and at least five counted rounds.

import pg from 'pg';
import { openPostgres, type PostgresEngine } from '../../src/engines/postgres/index.ts';
import type { OutboxOutcome } from '../../src/outbox/index.ts';
import { ours, type Case, type Runner } from '../benchmark.ts';
import type { QueueServers } from './queue-subject.ts';
import { inBatches, sampleMessages } from './sample-messages.ts';

type Ledger = PostgresEngine['outbox'];

/** Brings a ledger into a state; the returned function ends that state. */
type State = (ledger: Ledger, pool: pg.Pool) => Promise<(() => Promise<void>) | void>;

const perClaim = 100;

export function claimCases(servers: QueueServers, { quick }: { readonly quick: boolean }): Case[] {
  const sent = quick ? 200_000 : 5_000_000;
  const waiting = quick ? 20_000 : 200_000;
  const drained = quick ? 5_000 : 20_000;
  const states: Readonly<Record<string, State>> = {
    'with 5M sent rows': (_ledger, pool) => fillSent(pool, sent),
    'with 200k waiting': (ledger) => enqueue(ledger, waiting),
    'with a snapshot held open': async (ledger, pool) => {
      const client = await pool.connect();
      await client.query('begin isolation level repeatable read');
      await client.query('select 1 from core_outbox.ready limit 1');
      await enqueue(ledger, drained);
      await claimAll(ledger, drained / perClaim, () => undefined);
      return async () => {
        await client.query('rollback');
        client.release();
      };
    },
  };
  return Object.entries(states).map(([name, state]) => ({
    name: `claim time ${name}`,
    measure: 'latency',
    batch: quick ? 50 : 100,
    roundsMin: quick ? 3 : 5,
    // At most 1.5 times the duration on a new ledger.
    goals: [{ vs: 'a fresh ledger', ratioMin: 0.667 }],
    subjects: [
      { name: ours, setup: () => claiming(servers, state) },
      { name: 'a fresh ledger', setup: () => claiming(servers, async () => undefined) },
    ],
  }));
}

async function claiming(servers: QueueServers, state: State): Promise<Runner> {
  const url = await servers.postgres();
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const db = await openPostgres(url, { connectionsMax: 2, roles: ['outbox'] });
  const { outbox: ledger } = db;
  const end = await state(ledger, pool);
  return {
    prepare: (n) => enqueue(ledger, n * perClaim),
    run: (n, record) => claimAll(ledger, n, record),
    async teardown() {
      await end?.();
      await db[Symbol.asyncDispose]();
      await pool.end();
    },
  };
}

async function enqueue(ledger: Ledger, count: number): Promise<void> {
  for (const batch of inBatches(sampleMessages(count))) await ledger.enqueueMany(batch);
}

async function claimAll(
  ledger: Ledger,
  claims: number,
  record: (ms: number) => void,
): Promise<void> {
  let outcomes: OutboxOutcome[] = [];
  for (let done = 0; done < claims; done += 1) {
    const startedAt = performance.now();
    await ledger.settle(outcomes);
    const claimed = await ledger.claimDueBatch('bench', perClaim);
    record(performance.now() - startedAt);
    if (claimed.length !== perClaim) throw new Error(`${claimed.length} messages were claimed`);
    outcomes = claimed.map((claim) => ({ kind: 'sent', claim }));
  }
  await ledger.settle(outcomes);
}

/** Inserts sent rows directly, in the state after that many deliveries. */
async function fillSent(pool: pg.Pool, count: number): Promise<void> {
  const size = Math.min(count, 500_000);
  for (let from = 1; from <= count; from += size) {
    await pool.query(
      `with added as (
         insert into core_outbox.messages (source_stream_id, source_event_id, integration_type,
           event_type, payload, tenant_id, correlation_id, lane)
         select 'paymenthub.payment.v1-core-old-' || i, md5(i::text), 'webhook:partner-x',
           'payment.completed.v1', '{"paymentId":"p' || i || '","amount":1.23,"currency":"EUR"}',
           'tenant-' || i % 20, md5(i::text), i % 64
         from generate_series($1::integer, $2::integer) i
         returning seq)
       insert into core_outbox.sent (seq, attempts, sent_at) select seq, 0, now() from added`,
      [from, from + size - 1],
    );
  }
  await pool.query('vacuum analyze core_outbox.messages, core_outbox.sent');
}
