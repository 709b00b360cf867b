import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { paymentsScenario } from './payments-scenario.ts';

test('payments come to their ends in memory', () =>
  paymentsScenario({ engines: { store: 'memory:' } }));

test('payments come to their ends in one file', async () => {
  await using workspace = await createWorkspace();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  await paymentsScenario({ engines: { store } });
});
