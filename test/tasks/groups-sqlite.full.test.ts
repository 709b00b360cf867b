import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import { groupsCases } from './groups-cases.ts';
import { orchestratorCases } from './orchestrator-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-groups-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

for (const register of [groupsCases, orchestratorCases]) {
  register('sqlite', async () => {
    files += 1;
    const url = `sqlite:${join(folder, `${files}.db`)}`;
    return { address: { engine: 'sqlite', url }, bus: ownedRole(await openSqlite(url), 'bus') };
  });
}
