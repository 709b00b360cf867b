import { test } from 'node:test';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { killReactor } from './kill-reactor.ts';

test('a reactor on PostgreSQL that is killed before or after its effect has the effect once', async () => {
  await killReactor('postgres', (await sharedPostgres()).url);
});
