import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { testOrderOfBus, testTogether } from './ntfy-together.ts';

// A server for each: other tests of a shared one would read these topics too.
testTogether('Redis', () => startRedis());
testOrderOfBus('Redis', () => startRedis());
