import { join } from 'node:path';
import { openSqlite, type SqliteTransaction } from '../../src/engines/sqlite/index.ts';
import { createWorkspace } from '../store/rig.ts';
import { projectorCases } from './projector-cases.ts';

projectorCases<SqliteTransaction>('sqlite', async () => {
  const workspace = await createWorkspace();
  const db = await openSqlite(join(workspace.folder, 'events.db'));
  const { store, subscriptions, outbox } = db;
  return {
    store,
    subscriptions,
    outbox,
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
});
