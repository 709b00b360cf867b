import { test } from 'node:test';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { killReactor } from './kill-reactor.ts';

test('a reactor over a database that is killed on either side of its effect has it once', async () => {
  await killReactor('postgres', (await sharedPostgres()).url);
});
