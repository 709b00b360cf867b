import { join } from 'node:path';
import { test } from 'node:test';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { createWorkspace } from '../store/rig.ts';
import { paymentsScenario } from './payments-scenario.ts';

test('every payment completes or fails, on the stand-in for EventStoreDB 24.10', async () => {
  await using workspace = await createWorkspace();
  await using server = await startStandIn({ preset: '24.10' });
  const outbox = `sqlite:${join(workspace.folder, 'outbox.db')}`;
  await paymentsScenario({ engines: { store: server.url, outbox } });
});
