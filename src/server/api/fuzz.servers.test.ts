// The fuzz on PostgreSQL, which refuses texts and numbers that memory takes.

import { join } from 'node:path';
import { test } from 'node:test';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { fuzz, fuzzRuns, openForFuzz } from '../../testing/support/server/fuzz-cases.ts';

for (const [who, tenant, seed] of [
  ['a tenant', 'core', 11],
  ['all tenants', undefined, 12],
] as const) {
  test(`PostgreSQL takes whatever an administrator of ${who} sends`, async () => {
    const { url } = await sharedPostgres();
    await using opened = new AsyncDisposableStack();
    const folder = await createTempFolder('fuzz');
    opened.defer(() => removeTempFolder(folder));
    // By default the bus would be a file of the working folder, with what the run before left in it.
    const bus = `sqlite:${join(folder, 'bus.db')}`;
    const api = opened.use(await openForFuzz({ store: url, bus }));
    const token = await api.token('admin', tenant);
    await fuzz(api, { token, seed, runs: fuzzRuns / 4, isBound: tenant !== undefined });
  });
}
