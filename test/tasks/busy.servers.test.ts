import { sharedNats, sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import { busyCases } from './busy-cases.ts';

busyCases('redis', async () => {
  const { url, keyPrefix } = await sharedRedis();
  return { engine: 'redis', url, keyPrefix };
});

busyCases('nats', async () => {
  const { url, prefix } = await sharedNats();
  return { engine: 'nats', url, prefix };
});
