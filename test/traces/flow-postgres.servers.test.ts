// With delivery through BullMQ: jobs that BullMQ has already removed are in the trace.

import { startRedis } from '../../src/testing/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { after } from 'node:test';
import { flowCases } from './flow-cases.ts';

const redis = await startRedis();
after(() => redis[Symbol.asyncDispose]());

flowCases('postgres with a queue in Redis', async () => ({
  store: (await sharedPostgres()).url,
  queue: redis.url,
}));
