import { startNats } from '../../src/testing/servers/nats-server.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { testTwoTenants } from './two-tenant-cases.ts';

testTwoTenants(async (opened) => {
  const { url: nats } = opened.use(await startNats());
  return { store: (await sharedPostgres()).url, keys: nats, bus: nats };
});
