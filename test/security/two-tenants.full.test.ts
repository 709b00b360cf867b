import { join } from 'node:path';
import { createWorkspace } from '../store/rig.ts';
import { testTwoTenants } from './two-tenant-cases.ts';

testTwoTenants(async (opened) => {
  const { folder } = opened.use(await createWorkspace());
  return { store: `sqlite:${join(folder, 'events.db')}` };
});
