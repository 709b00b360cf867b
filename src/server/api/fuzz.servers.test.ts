// The fuzz on PostgreSQL, which refuses texts and numbers that memory takes.

import { test } from 'node:test';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { fuzz, fuzzRuns, openForFuzz } from './fuzz-cases.test.ts';

for (const [who, tenant, seed] of [
  ['a tenant', 'core', 11],
  ['all tenants', undefined, 12],
] as const) {
  test(`PostgreSQL takes whatever an administrator of ${who} sends`, async () => {
    const { url } = await sharedPostgres();
    await using api = await openForFuzz({ store: url });
    const token = await api.token('admin', tenant);
    await fuzz(api, { token, seed, runs: fuzzRuns / 2, isBound: tenant !== undefined });
  });
}
