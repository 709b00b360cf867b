import { join } from 'node:path';
import {
  sqliteEventStore,
  sqliteOutboxLedger,
  type SqliteTransaction,
} from '../../src/engines/sqlite/index.ts';
import { createWorkspace } from '../store/rig.ts';
import { projectorCases } from './projector-cases.ts';

projectorCases<SqliteTransaction>('sqlite', async () => {
  const workspace = await createWorkspace();
  const path = join(workspace.folder, 'events.db');
  const store = await sqliteEventStore(path);
  const ledger = await sqliteOutboxLedger(path);
  return {
    store,
    ledger,
    async [Symbol.asyncDispose]() {
      await ledger[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
});
