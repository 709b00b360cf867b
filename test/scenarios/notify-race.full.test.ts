import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { notifyRace } from './notify-race.ts';

test('processes at one window make one digest, and one of each reminder, in one file', async () => {
  await using workspace = await createWorkspace();
  await notifyRace({ store: `sqlite:${join(workspace.folder, 'events.db')}` });
});
