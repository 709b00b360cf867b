import { natsBus } from '../../src/engines/nats/index.ts';
import { redisBus } from '../../src/engines/redis/index.ts';
import { sharedNats, sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import { groupsCases } from './groups-cases.ts';
import { orchestratorCases } from './orchestrator-cases.ts';

for (const register of [groupsCases, orchestratorCases]) {
  register('redis', async () => {
    const { url, keyPrefix } = await sharedRedis();
    const bus = await redisBus(url, { keyPrefix });
    return { address: { engine: 'redis', url, keyPrefix }, bus };
  });

  register('nats', async () => {
    const { url, prefix } = await sharedNats();
    const bus = await natsBus(url, { prefix });
    return { address: { engine: 'nats', url, prefix }, bus };
  });
}
