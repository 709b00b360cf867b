import { openNats } from '../../src/engines/nats/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { sharedNats, sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import { groupsCases } from './groups-cases.ts';
import { orchestratorCases } from './orchestrator-cases.ts';

for (const register of [groupsCases, orchestratorCases]) {
  register('redis', async () => {
    const { url, keyPrefix } = await sharedRedis();
    const bus = ownedRole(await openRedis(url, { keyPrefix }), 'bus');
    return { address: { engine: 'redis', url, keyPrefix }, bus };
  });

  register('nats', async () => {
    const { url, prefix } = await sharedNats();
    const bus = ownedRole(await openNats(url, { prefix }), 'bus');
    return { address: { engine: 'nats', url, prefix }, bus };
  });
}
