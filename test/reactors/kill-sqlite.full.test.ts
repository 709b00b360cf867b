import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { killReactor } from './kill-reactor.ts';

test('a reactor on SQLite that is killed before or after its effect has the effect once', async () => {
  await using workspace = await createWorkspace();
  await killReactor('sqlite', `sqlite:${join(workspace.folder, 'events.db')}`);
});
