// A new database with the events and effects of one run.

import { openPostgres } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect } from '../store/connect.ts';
import type { Effect } from './effects.ts';
import type { OpenedRig } from './kill-workers.ts';

export async function openPostgresRig(): Promise<OpenedRig> {
  const { url } = await sharedPostgres();
  const client = await connect(url);
  await client.query(
    'create table effects (id bigserial primary key, event_id text, stream text, revision integer, worker text, token integer)',
  );
  const db = await openPostgres(url);
  return {
    url,
    store: db.store,
    subscriptions: db.subscriptions,
    async effects() {
      const { rows } = await client.query<Effect>(
        'select event_id as "eventId", stream, revision, worker, token from effects order by id',
      );
      return rows;
    },
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      await client.end();
    },
  };
}
