// graphile-worker with all its batching: fetching, completing and failing.

import pg from 'pg';
import { importPeer } from '../peers.ts';
import { openTransaction } from './open-transaction.ts';
import type { QueueSubject } from './queue-subject.ts';
import { inBatches, type SampleMessage } from './sample-messages.ts';

interface Graphile {
  readonly runMigrations: (options: {
    readonly pgPool: pg.Pool;
    readonly logger: unknown;
  }) => Promise<void>;
  readonly run: (options: {
    readonly pgPool: pg.Pool;
    readonly concurrency: number;
    readonly noHandleSignals: true;
    readonly logger: unknown;
    readonly taskList: Record<string, (payload: unknown) => Promise<void>>;
    readonly preset: { readonly worker: Record<string, unknown> };
  }) => Promise<{ stop(): Promise<void> }>;
  readonly Logger: new (factory: () => () => void) => unknown;
}

const addSql = `
select graphile_worker.add_jobs(array(
  select ('deliver', value, null, now(), 10, null, 0, null)::graphile_worker.job_spec
  from json_array_elements($1::json)))`;

export const graphileQueue: QueueSubject = {
  name: 'graphile-worker',
  async open(servers) {
    const { run, runMigrations, Logger } = await importPeer<Graphile>('graphile-worker');
    const connectionString = await servers.postgres();
    const pgPool = new pg.Pool({ connectionString, max: 10 });
    const pool = new pg.Pool({ connectionString, max: 2 });
    // Without a listener, a connection that breaks while idle would end the process.
    pgPool.on('error', () => undefined);
    pgPool.on('connect', (client) => client.on('error', () => undefined));
    const logger = new Logger(() => () => undefined);
    await runMigrations({ pgPool, logger });
    const add = (on: pg.Pool | pg.PoolClient, messages: readonly SampleMessage[]) =>
      on.query(addSql, [JSON.stringify(messages)]);
    return {
      async enqueue(messages) {
        for (const batch of inBatches(messages)) await add(pool, batch);
      },
      begin: (message) => openTransaction(pool, (client) => add(client, [message])),
      start: ({ concurrency, handle }) =>
        run({
          pgPool,
          concurrency,
          noHandleSignals: true,
          logger,
          taskList: { deliver: async (payload) => handle(payload as SampleMessage) },
          preset: {
            worker: {
              localQueue: { size: 500 },
              completeJobBatchDelay: 0,
              failJobBatchDelay: 0,
              pollInterval: 1_000,
            },
          },
        }),
      async isSettled() {
        const { rows } = await pool.query<{ left: boolean }>(
          'select exists (select from graphile_worker._private_jobs) as left',
        );
        return rows[0]?.left === false;
      },
      empty: async () => void (await pool.query('truncate graphile_worker._private_jobs')),
      async close() {
        await pgPool.end();
        await pool.end();
      },
    };
  },
};
