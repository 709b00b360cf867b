import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { createWorkspace, inRounds } from '../store/rig.ts';
import { killSagas } from './kill-sagas.ts';

test('sagas on SQLite whose workers are killed all end, each effect once and compensated in reverse', () =>
  inRounds(async (seed) => {
    await using workspace = await createWorkspace();
    const path = join(workspace.folder, 'events.db');
    await using db = await openSqlite(path);
    await killSagas({ engine: 'sqlite', url: `sqlite:${path}`, seed }, db);
  }));
