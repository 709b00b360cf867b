import { sharedNats, sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import { busyCases, threadCase } from './busy-cases.ts';

busyCases(() => {
  threadCase('redis', async () => {
    const { url, keyPrefix } = await sharedRedis();
    return { engine: 'redis', url, keyPrefix };
  });

  threadCase('nats', async () => {
    const { url, prefix } = await sharedNats();
    return { engine: 'nats', url, prefix };
  });
});
