import { test } from 'node:test';
import { startNats } from '../../src/testing/servers/nats-server.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { soakMinutes } from '../store/rig.ts';
import { checkListMemory, checkMemory, listMemoryTitle, memoryTitle } from './memory-cases.ts';

const skip = soakMinutes === 0 && 'minutes long: npm run soak -- security';

test(`PostgreSQL and NATS: ${memoryTitle}`, { skip }, async () => {
  await using server = await startNats();
  const { url } = server;
  await checkMemory({ store: (await sharedPostgres()).url, keys: url, bus: url });
});

test(`PostgreSQL and NATS: ${listMemoryTitle}`, { skip }, async () => {
  await using server = await startNats();
  const { url } = server;
  await checkListMemory({ store: (await sharedPostgres()).url, keys: url, bus: url });
});
