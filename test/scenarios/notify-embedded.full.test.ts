import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { notifyScenario } from './notify-scenario.ts';

test('a customer is told now, together, again, and by every channel, in one file', async () => {
  await using workspace = await createWorkspace();
  await notifyScenario({ store: `sqlite:${join(workspace.folder, 'events.db')}` });
});
