// Events and effects in one file.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteEventStore, type SqliteTransaction } from '../../src/adapters/sqlite/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import type { SubscriptionHost } from '../../src/subscriptions/index.ts';
import type { Effect } from './effects.ts';
import type { Rigged } from './kill-workers.ts';

export interface SqliteRig extends Rigged, AsyncDisposable {
  readonly url: string;
  readonly store: EventStore & SubscriptionHost<SqliteTransaction>;
}

export async function openSqliteRig(folder: string): Promise<SqliteRig> {
  const path = join(folder, 'events.db');
  const store = await sqliteEventStore(path);
  const database = new DatabaseSync(path, { timeout: 10_000 });
  database.exec(
    'create table effects (id integer primary key, event_id text, stream text, revision integer, worker text)',
  );
  const select = database.prepare(
    'select event_id as eventId, stream, revision, worker from effects order by id',
  );
  return {
    url: `sqlite:${path}`,
    store,
    effects: async () => select.all() as unknown as Effect[],
    async [Symbol.asyncDispose]() {
      database.close();
      await store[Symbol.asyncDispose]();
    },
  };
}
