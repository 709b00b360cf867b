import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { testOrderOfBus, testTogether } from './ntfy-together.ts';

// A server of its own: other tests of a shared one would read these topics too.
testTogether('Redis', () => startRedis(), testOrderOfBus);
