import { join } from 'node:path';
import { test } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { checkListMemory, checkMemory, listMemoryTitle, memoryTitle } from './memory-cases.ts';

test(`SQLite: ${memoryTitle}`, async () => {
  await using workspace = await createWorkspace();
  await checkMemory({ store: `sqlite:${join(workspace.folder, 'events.db')}` });
});

test(`SQLite: ${listMemoryTitle}`, async () => {
  await using workspace = await createWorkspace();
  await checkListMemory({ store: `sqlite:${join(workspace.folder, 'events.db')}` });
});
