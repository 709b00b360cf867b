import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { killReactor } from './kill-reactor.ts';

test('a reactor over a file that is killed on either side of its effect has it once', async () => {
  await using workspace = await createWorkspace();
  await killReactor('sqlite', `sqlite:${join(workspace.folder, 'events.db')}`);
});
