import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { notifyScenario } from './notify-scenario.ts';

test('a customer is notified immediately, by digest, by reminders and on every channel, on SQLite', async () => {
  await using workspace = await createWorkspace();
  await notifyScenario({ store: `sqlite:${join(workspace.folder, 'events.db')}` });
});
