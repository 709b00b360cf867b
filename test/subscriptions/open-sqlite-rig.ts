// A new file with the events and effects of one run.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteEventStore, type SqliteTransaction } from '../../src/engines/sqlite/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import type { SubscriptionHost } from '../../src/subscriptions/index.ts';
import { createWorkspace } from '../store/rig.ts';
import type { Effect } from './effects.ts';
import type { OpenedRig } from './kill-workers.ts';

export interface SqliteRig extends OpenedRig {
  readonly store: EventStore & SubscriptionHost<SqliteTransaction>;
}

export async function openSqliteRig(): Promise<SqliteRig> {
  const workspace = await createWorkspace();
  const path = join(workspace.folder, 'events.db');
  const store = await sqliteEventStore(path);
  const database = new DatabaseSync(path, { timeout: 60_000 });
  database.exec(
    'create table effects (id integer primary key, event_id text, stream text, revision integer, worker text, token integer)',
  );
  const select = database.prepare(
    'select event_id as eventId, stream, revision, worker, token from effects order by id',
  );
  return {
    url: `sqlite:${path}`,
    store,
    effects: async () => select.all() as unknown as Effect[],
    async [Symbol.asyncDispose]() {
      database.close();
      await store[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
}
