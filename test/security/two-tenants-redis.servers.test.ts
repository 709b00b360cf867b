import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { testTwoTenants } from './two-tenant-cases.ts';

testTwoTenants(async (opened) => {
  const { url: redis } = opened.use(await startRedis());
  return { store: (await sharedPostgres()).url, keys: redis, bus: redis };
});
