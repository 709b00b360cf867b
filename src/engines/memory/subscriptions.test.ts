import { after, test } from 'node:test';
import { subscriptionStorageConformance } from '../../testing/conformance/subscriptions/subscription-storage.ts';
import type { SqliteTransaction } from '../sqlite/subscriptions/subscriptions.ts';
import { openMemory } from './index.ts';

const db = openMemory();
after(() => db[Symbol.asyncDispose]());
let query: SqliteTransaction['query'] = async () => [];

for (const { name, skip, run } of subscriptionStorageConformance<SqliteTransaction>({
  capabilities: db.subscriptions.capabilities,
  open: async () => db.subscriptions,
  effects: {
    async write(transaction, key) {
      transaction.run('create table if not exists effects (key text not null)');
      transaction.run('insert into effects (key) values (?)', key);
      query = (sql, ...values) => transaction.query(sql, ...values);
    },
    async count(key) {
      const tables = await query(`select 1 from sqlite_master where name = 'effects'`);
      if (tables.length === 0) return 0;
      return (await query('select 1 from effects where key = ?', key)).length;
    },
  },
})) {
  test(`subscriptions in memory: ${name}`, { skip: skip ?? false }, run);
}
