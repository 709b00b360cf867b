// The fuzz tests on PostgreSQL, which rejects strings and numbers that the memory engine accepts.

import { join } from 'node:path';
import { test } from 'node:test';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { fuzz, fuzzRuns, openForFuzz } from '../../testing/support/server/fuzz-cases.ts';

for (const [who, tenant, seed] of [
  ['a tenant', 'core', 11],
  ['all tenants', undefined, 12],
] as const) {
  test(`PostgreSQL: every route survives any input of an admin of ${who}`, async () => {
    const { url } = await sharedPostgres();
    await using opened = new AsyncDisposableStack();
    const folder = await createTempFolder('fuzz');
    opened.defer(() => removeTempFolder(folder));
    // The default bus is a file in the working folder, with data of the previous run.
    const bus = `sqlite:${join(folder, 'bus.db')}`;
    const api = opened.use(await openForFuzz({ store: url, bus }));
    const token = await api.token('admin', tenant);
    await fuzz(api, { token, seed, runs: fuzzRuns / 4, isBound: tenant !== undefined });
  });
}
