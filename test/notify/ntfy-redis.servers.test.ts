import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { testTogether } from './ntfy-together.ts';

// Not the shared server: its other tests would read these topics too.
testTogether('Redis', () => startRedis());
