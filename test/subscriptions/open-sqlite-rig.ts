// A new file with the events and effects of one run.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqlite, type SqliteTransaction } from '../../src/engines/sqlite/index.ts';
import { createWorkspace } from '../store/rig.ts';
import type { Effect } from './effects.ts';
import type { OpenedRig } from './kill-workers.ts';

export async function openSqliteRig(): Promise<OpenedRig<SqliteTransaction>> {
  const workspace = await createWorkspace();
  const path = join(workspace.folder, 'events.db');
  const db = await openSqlite(path);
  const database = new DatabaseSync(path, { timeout: 60_000 });
  database.exec(
    'create table effects (id integer primary key, event_id text, stream text, revision integer, worker text, token integer)',
  );
  const select = database.prepare(
    'select event_id as eventId, stream, revision, worker, token from effects order by id',
  );
  return {
    url: `sqlite:${path}`,
    store: db.store,
    subscriptions: db.subscriptions,
    effects: async () => select.all() as unknown as Effect[],
    async [Symbol.asyncDispose]() {
      database.close();
      await db[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
}
