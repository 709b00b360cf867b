import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkHistories, killWriters } from './kill-writers.ts';
import { createWorkspace, newSeed, openStore, soakMinutes } from './rig.ts';

test('what a killed process was told is in the file, once, whole and in its place', async () => {
  const endAt = performance.now() + soakMinutes * 60_000;
  do {
    const seed = newSeed();
    await using workspace = await createWorkspace();
    const url = `sqlite:${join(workspace.folder, 'events.db')}`;
    const kills = 25;
    await killWriters({
      engine: 'sqlite',
      url,
      workspace,
      seed,
      kills,
      writers: 2,
      transactionsPercent: 0,
    });
    await using store = await openStore('sqlite', url);
    const acknowledged = await checkHistories(store, workspace, seed);
    assert.ok(acknowledged > 3 * kills, `only ${acknowledged} appends were acknowledged`);
  } while (performance.now() < endAt);
});
