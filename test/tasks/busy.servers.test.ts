import { sharedNats, sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import { threadCase } from './busy-cases.ts';

threadCase('redis', async () => {
  const { url, keyPrefix } = await sharedRedis();
  return { engine: 'redis', url, keyPrefix };
});

threadCase('nats', async () => {
  const { url, prefix } = await sharedNats();
  return { engine: 'nats', url, prefix };
});
