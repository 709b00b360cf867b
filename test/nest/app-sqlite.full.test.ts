import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after } from 'node:test';
import { createWorkspace } from '../store/rig.ts';
import { appCases } from './app-cases.ts';
import { compileApp } from './compile-app.ts';

const workspace = await createWorkspace();
after(() => workspace[Symbol.asyncDispose]());

appCases('sqlite', await compileApp(), async () => ({
  store: `sqlite:${join(workspace.folder, `${randomUUID()}.db`)}`,
}));
