import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { notifyRace } from './notify-race.ts';

test('concurrent processes create one digest per window and each reminder once, on SQLite', async () => {
  await using workspace = await createWorkspace();
  await notifyRace({ store: `sqlite:${join(workspace.folder, 'events.db')}` });
});
