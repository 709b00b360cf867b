import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkHistories, killWriters } from './kill-writers.ts';
import { createWorkspace, inRounds, openStore, soakMinutes } from './rig.ts';

test('events acknowledged to a killed process are in the SQLite file once, complete and in order', () =>
  inRounds(async (seed) => {
    await using workspace = await createWorkspace();
    const url = `sqlite:${join(workspace.folder, 'events.db')}`;
    const plan = { kills: soakMinutes > 0 ? 25 : 2, writers: 2, transactionsPercent: 0 };
    const reported = await killWriters({ engine: 'sqlite', url, workspace, seed, ...plan });
    await using store = await openStore('sqlite', url);
    const acknowledged = await checkHistories(store, workspace, seed);
    assert.ok(acknowledged >= reported, `${acknowledged} of ${reported} acknowledged appends`);
  }));
