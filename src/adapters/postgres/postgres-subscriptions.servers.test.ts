import { after, test } from 'node:test';
import pg from 'pg';
import { subscriptionStorageConformance } from '../../subscriptions/subscription-storage.conformance.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { postgresEventStore } from './postgres-event-store.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 3 });
const schema = 'subscriptions';
const store = await postgresEventStore(url, { schema, connectionsMax: 6 });
const second = await postgresEventStore(url, { schema, connectionsMax: 3 });
await pool.query('create table effects (key text not null)');
after(async () => {
  await store[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  await pool.end();
});

for (const { name, skip, run } of subscriptionStorageConformance<pg.ClientBase>({
  capabilities: store.subscriptions.capabilities,
  open: async () => store.subscriptions,
  second: async () => second.subscriptions,
  effects: {
    async write(transaction, key) {
      await transaction.query('insert into effects (key) values ($1)', [key]);
    },
    async count(key) {
      const { rows } = await pool.query<{ n: string }>(
        'select count(*) as n from effects where key = $1',
        [key],
      );
      return Number(rows[0]?.n);
    },
  },
})) {
  test(`subscriptions in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}
