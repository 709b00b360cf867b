import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { collabScenario } from './collab-scenario.ts';

test('a tag in a message changes the task, the board, screens and mailboxes, on SQLite', async () => {
  await using workspace = await createWorkspace();
  await collabScenario({ store: `sqlite:${join(workspace.folder, 'events.db')}` });
});
