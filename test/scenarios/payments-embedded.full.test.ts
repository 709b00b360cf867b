import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { paymentsScenario } from './payments-scenario.ts';

test('every payment completes or fails, in memory', () =>
  paymentsScenario({ engines: { store: 'memory:' } }));

test('every payment completes or fails, on SQLite', async () => {
  await using workspace = await createWorkspace();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  await paymentsScenario({ engines: { store } });
});
